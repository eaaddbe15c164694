# SPDX-License-Identifier: MIT
# Strings, hashes and sorting. Argument: percent of the usual work.
use strict;
use warnings;

my $rounds = int(26 * $ARGV[0] / 100) || 1;
my $seen = 0;
for my $round (1 .. $rounds) {
    my %count;
    my $text = '';
    for my $i (1 .. 9000) {
        my $word = 'w' . ($i * 7919 % 3001) . chr(97 + $i % 26) x ($i % 23);
        $count{$word}++;
        $text .= "$word $i\n";
    }
    my @lines = sort { $a cmp $b } split /\n/, $text;
    my %lists;
    push @{ $lists{ length $_ } }, uc $_ for @lines;
    $seen += scalar(@$_) for values %lists;
    $seen += keys %count;
}
die if $seen == 0;
