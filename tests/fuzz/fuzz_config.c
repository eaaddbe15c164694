// SPDX-License-Identifier: MIT
//
// The configuration parser. The input is an environment: entries separated by zero bytes, each
// with or without the prefix. Numbers and sizes are parsed a second time here, by other means.
#include "fuzz.h"

#include <errno.h>

#include "config.h"

enum kind { BOOL, CHOICE, SIZE, NUMBER, TEXT };

static const struct {
    const char *name;
    enum kind kind;
    size_t offset;
    uint64_t minimum;
    uint64_t maximum;
} options[] = {
#define GH_OPTION(field, name, kind, initial, minimum, maximum, choices, meaning)                                      \
    { #name, kind, offsetof(struct gh_config, field), (minimum), (maximum) },
#include "config_options.def"
#undef GH_OPTION
};
#define COUNT (sizeof(options) / sizeof(options[0]))

static struct gh_config initial;
static bool have_initial;

// 0 and the value, or EINVAL. 128 bits hold what 64 do not.
static int reference(const char *text, bool is_size, uint64_t *out) {
    size_t digits = strspn(text, "0123456789");
    unsigned __int128 value = 0;
    for (size_t i = 0; i < digits; i++) {
        value = value * 10 + (unsigned)(text[i] - '0');
        if (value > UINT64_MAX)
            return EINVAL;
    }
    const char *rest = text + digits;
    if (digits == 0)
        return EINVAL;
    if (is_size && *rest != '\0') {
        static const char letters[] = "kmgtKMGT";
        const char *letter = memchr(letters, *rest, 8);
        if (letter == NULL)
            return EINVAL;
        for (long i = 0; i <= (letter - letters) % 4; i++)
            value *= 1024;
        rest++;
        if (strcmp(rest, "") != 0 && strcmp(rest, "B") != 0 && strcmp(rest, "b") != 0 && strcmp(rest, "iB") != 0)
            return EINVAL;
        rest = "";
    }
    if (*rest != '\0' || value > UINT64_MAX)
        return EINVAL;
    *out = (uint64_t)value;
    return 0;
}

static uint64_t number(size_t option) {
    return *(const uint64_t *)(const void *)((const char *)&gh_config + options[option].offset);
}

static void check_one(const char *value) {
    for (size_t i = 0; i < COUNT; i++) {
        if (options[i].kind != SIZE && options[i].kind != NUMBER)
            continue;
        gh_config = initial;
        uint64_t before = number(i);
        uint64_t wanted = 0;
        int error = reference(value, options[i].kind == SIZE, &wanted);
        if (error == 0 && (wanted < options[i].minimum || wanted > options[i].maximum))
            error = EINVAL;
        if (*value == '\0') {
            error = 0;
            wanted = before;
        }
        FUZZ_CHECK(gh_config_set(options[i].name, strlen(options[i].name), value) == error);
        FUZZ_CHECK(number(i) == (error == 0 ? wanted : before));
    }
}

static void check_ranges(void) {
    for (size_t i = 0; i < COUNT; i++)
        FUZZ_CHECK(options[i].kind == TEXT || (number(i) >= options[i].minimum && number(i) <= options[i].maximum));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    enum { ENTRIES = 64 };
    char *environment[ENTRIES + 1];
    size_t count = 0;
    if (!have_initial)
        initial = gh_config;
    have_initial = true;

    // An exact copy, so that the address sanitizer sees every byte too many that is read.
    char *text = malloc(size + 1);
    FUZZ_CHECK(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *at = text; at <= text + size && count < ENTRIES; at += strlen(at) + 1)
        environment[count++] = at;
    environment[count] = NULL;

    gh_config = initial;
    gh_config_read(environment, true);
    FUZZ_CHECK(memcmp(&gh_config, &initial, sizeof(initial)) == 0);
    gh_config_read(environment, false);
    check_ranges();
    gh_config_print("1");
    gh_config_print("markdown");
    for (size_t i = 0; i < count; i++) {
        const char *value = strchr(environment[i], '=');
        check_one(value == NULL ? environment[i] : value + 1);
        (void)gh_config_lists(environment[0], environment[i]);
    }
    gh_config = initial;
    free(text);
    return 0;
}
