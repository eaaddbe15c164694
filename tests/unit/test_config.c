// SPDX-License-Identifier: MIT
//
// Options: each kind, values at and beyond their limits, what is said of bad ones, word for word.
#include "captured.h"

#include "config.h"

static int set(const char *name, const char *value) {
    return gh_config_set(name, strlen(name), value);
}

Test(config, booleans) {
    static const char *const on[] = { "1", "on", "yes", "true" };
    static const char *const off[] = { "0", "off", "no", "false" };
    static const char *const bad[] = { "2", "ja", "ON", "o", "tru e", "1 ", " 1", "-1", "01" };
    for (size_t i = 0; i < 4; i++) {
        cr_assert_eq(set("HUGEPAGES", on[i]), 0);
        cr_assert_eq(gh_config.hugepages, 1);
        cr_assert_eq(set("HUGEPAGES", off[i]), 0);
        cr_assert_eq(gh_config.hugepages, 0);
    }
    gh_config.hugepages = 1;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_assert_eq(set("HUGEPAGES", bad[i]), EINVAL, "'%s'", bad[i]);
        cr_assert_eq(gh_config.hugepages, 1);
    }
}

Test(config, choices) {
    static const struct {
        const char *text;
        int error;
        uint64_t value;
    } cases[] = {
        { "none", 0, GH_LOG_NONE },   { "error", 0, GH_LOG_ERROR },   { "warning", 0, GH_LOG_WARNING },
        { "warn", 0, GH_LOG_WARNING }, { "info", 0, GH_LOG_INFO },     { "debug", 0, GH_LOG_DEBUG },
        { "war", EINVAL, 0 },          { "warnings", EINVAL, 0 },      { "3", EINVAL, 0 },
        { "none,error", EINVAL, 0 },   { ",", EINVAL, 0 },             { "DEBUG", EINVAL, 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        gh_config.log = 77;
        cr_assert_eq(set("LOG", cases[i].text), cases[i].error, "'%s'", cases[i].text);
        cr_assert_eq(gh_config.log, cases[i].error == 0 ? cases[i].value : 77, "'%s'", cases[i].text);
    }
}

Test(config, sizes) {
    static const struct {
        const char *text;
        int error;
        uint64_t value;
    } cases[] = {
        { "65536", 0, 65536 },     { "64K", 0, 65536 },        { "64k", 0, 65536 },     { "1M", 0, 1 << 20 },
        { "1MiB", 0, 1 << 20 },    { "1MB", 0, 1 << 20 },      { "2g", 0, UINT64_C(2) << 30 },
        { "1T", 0, UINT64_C(1) << 40 }, { "65535", EINVAL, 0 }, { "2T", EINVAL, 0 },    { "64KK", EINVAL, 0 },
        { "1.5M", EINVAL, 0 },     { "K", EINVAL, 0 },         { "-1M", EINVAL, 0 },    { "1M ", EINVAL, 0 },
        { "+1M", EINVAL, 0 },      { "0x10000000", EINVAL, 0 }, { "18446744073709551616", EINVAL, 0 },
        { "18446744073709551615T", EINVAL, 0 }, { "16777216T", EINVAL, 0 }, { "99999999999999999999999", EINVAL, 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        gh_config.region_min = 77;
        cr_assert_eq(set("REGION_MIN", cases[i].text), cases[i].error, "'%s'", cases[i].text);
        cr_assert_eq(gh_config.region_min, cases[i].error == 0 ? cases[i].value : 77, "'%s'", cases[i].text);
    }
}

Test(config, numbers_take_no_suffix) {
    cr_assert_eq(set("DECAY_MS", "0"), 0);
    cr_assert_eq(gh_config.decay_ms, 0);
    cr_assert_eq(set("DECAY_MS", "86400000"), 0);
    cr_assert_eq(gh_config.decay_ms, 86400000);
    cr_assert_eq(set("DECAY_MS", "86400001"), EINVAL);
    cr_assert_eq(set("DECAY_MS", "1K"), EINVAL);
    cr_assert_eq(gh_config.decay_ms, 86400000);
}

Test(config, texts_and_empty_values) {
    static const char value[] = "make:cc1";
    cr_assert_eq(set("EXCLUDE", value), 0);
    cr_assert_eq(gh_config.exclude, value);
    cr_assert_eq(set("EXCLUDE", ""), 0);
    cr_assert_null(gh_config.exclude);
    gh_config.decay_ms = 5;
    cr_assert_eq(set("DECAY_MS", ""), 0);
    cr_assert_eq(gh_config.decay_ms, 5);
}

Test(config, names) {
    cr_assert_eq(set("NO_SUCH", "1"), ENOENT);
    cr_assert_eq(set("log", "debug"), ENOENT);
    cr_assert_eq(set("LO", "debug"), ENOENT);
    cr_assert_eq(set("LOGS", "debug"), ENOENT);
    cr_assert_eq(set("", "1"), ENOENT);
}

static void read_all(bool privileged, char *a, char *b, char *c, char *d) {
    char *environment[] = { "PATH=/bin", a, b, c, d, NULL };
    gh_config_read(environment, privileged);
}

Test(config, environment) {
    capture_start();
    read_all(false, "GPUHOST_DECAY_MS=7", "GPUHOST_STATS=stderr", "XGPUHOST_ARENAS=3", "GPUHOST_ARENAS=2");
    cr_assert_eq(gh_config.decay_ms, 7);
    cr_assert_str_eq(gh_config.stats, "stderr");
    cr_assert_eq(gh_config.arenas, 2);
    cr_assert_str_eq(captured(), "");
    gh_config_read(NULL, false);
}

Test(config, what_is_said_of_bad_values) {
    capture_start();
    gh_config.log = GH_LOG_WARNING;
    read_all(false, "GPUHOST_DECAY_MS=soon", "GPUHOST_REGION_MIN=1K", "GPUHOST_HUGEPAGES=maybe", "GPUHOST_IMPORT=ever");
    cr_assert_str_eq(captured(),
                     "gpuhost: GPUHOST_DECAY_MS='soon' is not understood (0 to 86400000); using 5000\n"
                     "gpuhost: GPUHOST_REGION_MIN='1K' is not understood (64K to 1T); using 16M\n"
                     "gpuhost: GPUHOST_HUGEPAGES='maybe' is not understood (0, 1); using 0\n"
                     "gpuhost: GPUHOST_IMPORT='ever' is not understood (auto, always, never); using auto\n");
    cr_assert_eq(gh_config.import, GH_IMPORT_AUTO);
}

Test(config, unknown_names_are_reported_once) {
    capture_start();
    gh_config.log = GH_LOG_WARNING;
    read_all(false, "GPUHOST_DECAY=5", "GPUHOST_LOGGING=1", "GPUHOST_HELP=", "GPUHOST_LIBRARY=/x");
    cr_assert_str_eq(captured(), "gpuhost: GPUHOST_DECAY is not an option of libgpuhost; ignored\n"
                                 "gpuhost: GPUHOST_LOGGING is not an option of libgpuhost; ignored\n");
}

// The level governs what is said of the others, wherever it stands.
Test(config, the_log_level_is_read_first) {
    capture_start();
    read_all(false, "GPUHOST_NONSENSE=1", "GPUHOST_DECAY_MS=x", "GPUHOST_LOG=none", "A=B");
    cr_assert_str_eq(captured(), "");
    read_all(false, "GPUHOST_LOG=loud", "A=B", "A=B", "A=B");
    cr_assert_str_eq(captured(), "");
    gh_config.log = GH_LOG_WARNING;
    read_all(false, "GPUHOST_LOG=loud", "A=B", "A=B", "A=B");
    cr_assert_str_eq(captured(),
                     "gpuhost: GPUHOST_LOG='loud' is not understood (none, error, warning, info, debug); using warning\n");
}

Test(config, a_long_value_is_cut_in_the_line_and_nowhere_else) {
    capture_start();
    gh_config.log = GH_LOG_WARNING;
    static char entry[4096] = "GPUHOST_DECAY_MS=";
    memset(entry + strlen(entry), '9', 3000);
    read_all(false, entry, "A=B", "A=B", "A=B");
    const char *line = captured();
    cr_assert_eq(strncmp(line, "gpuhost: GPUHOST_DECAY_MS='9999", 31), 0);
    cr_assert_eq(line[strlen(line) - 1], '\n');
    cr_assert_lt(strlen(line), 700);
}

Test(config, privileged_processes_read_nothing) {
    capture_start();
    uint64_t before = gh_config.decay_ms;
    read_all(true, "GPUHOST_DECAY_MS=7", "GPUHOST_STATS=/etc/passwd", "GPUHOST_NONSENSE=1", "GPUHOST_LOG=x");
    cr_assert_eq(gh_config.decay_ms, before);
    cr_assert_null(gh_config.stats);
    cr_assert_str_eq(captured(), "");
}

Test(config, lists_of_programs) {
    cr_assert(gh_config_lists("make", "make"));
    cr_assert(gh_config_lists("cc1:make", "/usr/bin/make"));
    cr_assert(gh_config_lists(":make:", "./make"));
    cr_assert_not(gh_config_lists("make", "cmake"));
    cr_assert_not(gh_config_lists("cmake", "make"));
    cr_assert_not(gh_config_lists("", "make"));
    cr_assert_not(gh_config_lists("make", "/bin/make/"));
    cr_assert_not(gh_config_lists(NULL, "make"));
    cr_assert_not(gh_config_lists("make", NULL));
}

static unsigned count_lines(const char *text) {
    unsigned lines = 0;
    for (; *text != '\0'; text++)
        lines += *text == '\n';
    return lines;
}

#define GH_OPTION(field, name, kind, initial, minimum, maximum, choices, meaning) +1u
enum { OPTIONS = 0
#include "config_options.def"
};
#undef GH_OPTION

Test(config, printing) {
    capture_start();
    gh_config_print("names");
    const char *text = captured();
    cr_assert_eq(count_lines(text), OPTIONS);
    cr_assert_not_null(strstr(text, "GPUHOST_DECAY_MS\n"));
    gh_config_print("markdown");
    text = captured();
    cr_assert_eq(count_lines(text), OPTIONS + 2);
    cr_assert_not_null(strstr(text, "| `GPUHOST_REGION_MIN` | 16M | 64K to 1T | "));
    gh_config.decay_ms = 12;
    gh_config_print("1");
    text = captured();
    cr_assert_eq(count_lines(text), OPTIONS);
    cr_assert_not_null(strstr(text, "GPUHOST_DECAY_MS=12  (default 5000; 0 to 86400000)  "));
}
