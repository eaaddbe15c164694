// SPDX-License-Identifier: MIT
//
// Parses and prints the options (config.h, config_options.def). No allocation, no locale, no
// libc function that could call malloc: this runs inside the first malloc of the process.
#include "config.h"

#include <errno.h>
#include <string.h>

#include "log.h"

enum kind { KIND_BOOL, KIND_CHOICE, KIND_SIZE, KIND_NUMBER, KIND_TEXT };

struct option {
    const char *name;
    enum kind kind;
    size_t offset;
    uint64_t minimum;
    uint64_t maximum;
    const char *choices;
    const char *meaning;
};

#define GH_CONFIG_DEFAULT_BOOL(value) (value)
#define GH_CONFIG_DEFAULT_CHOICE(value) (value)
#define GH_CONFIG_DEFAULT_SIZE(value) (value)
#define GH_CONFIG_DEFAULT_NUMBER(value) (value)
#define GH_CONFIG_DEFAULT_TEXT(value) NULL

#define GH_OPTION(field, name, kind, initial, minimum, maximum, choices, meaning)                                      \
    .field = GH_CONFIG_DEFAULT_##kind(initial),
struct gh_config gh_config = {
#include "config_options.def"
};
static const struct gh_config defaults = {
#include "config_options.def"
};
#undef GH_OPTION

#define GH_OPTION(field, name, kind, initial, minimum, maximum, choices, meaning)                                      \
    { #name, KIND_##kind, offsetof(struct gh_config, field), (minimum), (maximum), (choices), (meaning) },
static const struct option options[] = {
#include "config_options.def"
};
#undef GH_OPTION

#define OPTION_COUNT (sizeof(options) / sizeof(options[0]))
#define PREFIX "GPUHOST_"
#define PREFIX_LENGTH (sizeof(PREFIX) - 1)

static uint64_t *number_of(struct gh_config *config, const struct option *option) {
    return (uint64_t *)(void *)((char *)config + option->offset);
}

static const char **text_of(struct gh_config *config, const struct option *option) {
    return (const char **)(void *)((char *)config + option->offset);
}

static int parse_number(const char *text, bool with_suffix, uint64_t *out) {
    uint64_t value = 0;
    const char *at = text;
    if (*at < '0' || *at > '9')
        return EINVAL;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return EINVAL;
    }
    if (with_suffix && *at != '\0') {
        static const char suffixes[] = "KMGT";
        char letter = (char)(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
        const char *found = strchr(suffixes, letter);
        if (found != NULL) {
            unsigned shift = 10u * (unsigned)(found - suffixes + 1);
            if (value > UINT64_MAX >> shift)
                return EINVAL;
            value <<= shift;
            at++;
            if (at[0] == 'i' && at[1] == 'B')
                at += 2;
            else if (at[0] == 'B' || at[0] == 'b')
                at++;
        }
    }
    if (*at != '\0')
        return EINVAL;
    *out = value;
    return 0;
}

// The index of `text` in a list of words separated by commas, or EINVAL. The first four letters
// of a word are enough ("warn").
#define ABBREVIATION_MIN 4u

static int parse_choice(const char *list, const char *text, uint64_t *out) {
    size_t length = strlen(text);
    uint64_t index = 0;
    for (const char *word = list;; index++) {
        size_t word_length = strcspn(word, ",");
        bool whole = word_length == length;
        bool abbreviated = word_length > length && length >= ABBREVIATION_MIN;
        if ((whole || abbreviated) && memcmp(word, text, length) == 0) {
            *out = index;
            return 0;
        }
        if (word[word_length] == '\0')
            return EINVAL;
        word += word_length + 1;
    }
}

static int parse_bool(const char *text, uint64_t *out) {
    uint64_t index;
    if (parse_choice("0,1,off,on,no,yes,false,true", text, &index) != 0)
        return EINVAL;
    *out = index & 1;
    return 0;
}

static const struct option *find(const char *name, size_t length) {
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (strlen(options[i].name) == length && memcmp(options[i].name, name, length) == 0)
            return &options[i];
    }
    return NULL;
}

int gh_config_set(const char *name, size_t name_length, const char *value) {
    const struct option *option = find(name, name_length);
    if (option == NULL)
        return ENOENT;
    if (option->kind == KIND_TEXT) {
        *text_of(&gh_config, option) = *value == '\0' ? NULL : value;
        return 0;
    }
    if (*value == '\0') // set but empty is how scripts say "not set"
        return 0;
    uint64_t number = 0;
    int error;
    switch (option->kind) {
    case KIND_BOOL:
        error = parse_bool(value, &number);
        break;
    case KIND_CHOICE:
        error = parse_choice(option->choices, value, &number);
        break;
    default:
        error = parse_number(value, option->kind == KIND_SIZE, &number);
        break;
    }
    if (error != 0 || number < option->minimum || number > option->maximum)
        return EINVAL;
    *number_of(&gh_config, option) = number;
    return 0;
}

static void describe_range(struct gh_text *out, const struct option *option) {
    switch (option->kind) {
    case KIND_BOOL:
        gh_text_add(out, "0, 1");
        break;
    case KIND_CHOICE:
        for (const char *at = option->choices; *at != '\0'; at++) {
            char letter[3] = { *at, *at == ',' ? ' ' : '\0', '\0' };
            gh_text_add(out, letter);
        }
        break;
    case KIND_TEXT:
        gh_text_add(out, "text");
        break;
    case KIND_SIZE:
        gh_text_add_size(out, option->minimum);
        gh_text_add(out, " to ");
        gh_text_add_size(out, option->maximum);
        break;
    case KIND_NUMBER:
        gh_text_add_number(out, option->minimum);
        gh_text_add(out, " to ");
        gh_text_add_number(out, option->maximum);
        break;
    }
}

static void describe_value(struct gh_text *out, struct gh_config *config, const struct option *option) {
    if (option->kind == KIND_TEXT) {
        const char *text = *text_of(config, option);
        gh_text_add(out, text == NULL ? "" : text);
        return;
    }
    uint64_t value = *number_of(config, option);
    if (option->kind == KIND_CHOICE) {
        const char *word = option->choices;
        for (uint64_t i = 0; i < value; i++)
            word += strcspn(word, ",") + 1;
        gh_text_add_part(out, word, strcspn(word, ","));
    } else if (option->kind == KIND_SIZE) {
        gh_text_add_size(out, value);
    } else {
        gh_text_add_number(out, value);
    }
}

static void report_bad_value(const struct option *option, const char *value) {
    struct gh_text line;
    gh_text_start(&line);
    gh_text_add(&line, PREFIX);
    gh_text_add(&line, option->name);
    gh_text_add(&line, "='");
    gh_text_add(&line, value);
    gh_text_add(&line, "' is not understood (");
    describe_range(&line, option);
    gh_text_add(&line, "); using ");
    struct gh_config copy = defaults;
    describe_value(&line, &copy, option);
    gh_log_text(GH_LOG_WARNING, &line);
}

void gh_config_read(char *const *environment, bool privileged) {
    if (privileged || environment == NULL)
        return;
    // The log level first, so that it governs what the rest reports.
    for (int pass = 0; pass < 2; pass++) {
        for (char *const *entry = environment; *entry != NULL; entry++) {
            if (strncmp(*entry, PREFIX, PREFIX_LENGTH) != 0)
                continue;
            const char *name = *entry + PREFIX_LENGTH;
            size_t length = strcspn(name, "=");
            bool is_log = length == 3 && memcmp(name, "LOG", 3) == 0;
            if (name[length] != '=' || is_log != (pass == 0))
                continue;
            // Not options: a question to us, and where the scripts find the library.
            if ((length == 4 && memcmp(name, "HELP", 4) == 0) || (length == 7 && memcmp(name, "LIBRARY", 7) == 0) ||
                (length > 5 && memcmp(name, "TEST_", 5) == 0))
                continue;
            int error = gh_config_set(name, length, name + length + 1);
            if (error == EINVAL) {
                report_bad_value(find(name, length), name + length + 1);
            } else if (error == ENOENT) {
                struct gh_text line;
                gh_text_start(&line);
                gh_text_add(&line, PREFIX);
                gh_text_add_part(&line, name, length);
                gh_text_add(&line, " is not an option of libgpuhost; ignored");
                gh_log_text(GH_LOG_WARNING, &line);
            }
        }
    }
}

bool gh_config_lists(const char *list, const char *program) {
    if (list == NULL || program == NULL)
        return false;
    const char *slash = strrchr(program, '/');
    const char *base = slash == NULL ? program : slash + 1;
    size_t length = strlen(base);
    for (const char *word = list; *word != '\0';) {
        size_t word_length = strcspn(word, ":");
        if (word_length == length && memcmp(word, base, length) == 0)
            return true;
        word += word_length;
        if (*word == ':')
            word++;
    }
    return false;
}

void gh_config_print(const char *form) {
    bool names = strcmp(form, "names") == 0;
    bool markdown = strcmp(form, "markdown") == 0;
    if (strcmp(form, "version") == 0) {
        gh_log_raw(GH_VERSION "\n");
        return;
    }
    struct gh_config initial = defaults;
    struct gh_text line;
    if (markdown)
        gh_log_raw("| variable | default | values | meaning |\n| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = &options[i];
        gh_text_start(&line);
        if (markdown)
            gh_text_add(&line, "| `");
        gh_text_add(&line, PREFIX);
        gh_text_add(&line, option->name);
        if (names) {
            gh_text_add(&line, "\n");
            gh_log_raw(gh_text_get(&line));
            continue;
        }
        if (markdown) {
            gh_text_add(&line, "` | ");
            describe_value(&line, &initial, option);
            gh_text_add(&line, " | ");
            describe_range(&line, option);
            gh_text_add(&line, " | ");
            gh_text_add(&line, option->meaning);
            gh_text_add(&line, " |\n");
        } else {
            gh_text_add(&line, "=");
            describe_value(&line, &gh_config, option);
            gh_text_add(&line, "  (default ");
            describe_value(&line, &initial, option);
            gh_text_add(&line, "; ");
            describe_range(&line, option);
            gh_text_add(&line, ")  ");
            gh_text_add(&line, option->meaning);
            gh_text_add(&line, "\n");
        }
        gh_log_raw(gh_text_get(&line));
    }
}
