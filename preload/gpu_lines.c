// SPDX-License-Identifier: MIT
//
// The GPU side's lines (gpu_lines.h).
#include "gpu_lines.h"

#include "config.h"
#include "log.h"

static atomic_flag refusal_said = ATOMIC_FLAG_INIT;
static atomic_flag limit_said = ATOMIC_FLAG_INIT;
static atomic_flag kept_said = ATOMIC_FLAG_INIT;

void gh_gpu_say_refused(const char *backend, size_t size, const char *why) {
    struct gh_text line;
    gh_text_start(&line);
    gh_text_add(&line, backend);
    gh_text_add(&line, " refused to import ");
    gh_text_add_number(&line, size / GH_KIB);
    gh_text_add(&line, " KiB of heap (");
    gh_text_add(&line, why);
    gh_text_add(&line, "); it stays usable, but not by the GPU in place (GPUHOST_LOG=info says each time; "
                       "GPUHOST_BACKEND=none stops the attempts)");
    if (gh_config.log >= GH_LOG_INFO)
        gh_log_text(GH_LOG_INFO, &line);
    else
        gh_log_once(&refusal_said, GH_LOG_WARNING, &line);
}

void gh_gpu_say_limit(uint64_t limit) {
    struct gh_text line;
    gh_text_start(&line);
    gh_text_add(&line, "the limit of ");
    gh_text_add_number(&line, limit / GH_MIB);
    gh_text_add(&line, " MiB of imported memory is reached; further heap is not visible to the GPU "
                       "(GPUHOST_LIMIT changes it)");
    gh_log_once(&limit_said, GH_LOG_WARNING, &line);
}

void gh_gpu_say_kept(void) {
    struct gh_text line;
    gh_text_start(&line);
    gh_text_add(&line, "a driver refused to release an import that a wrap made; it is kept for later wraps");
    gh_log_once(&kept_said, GH_LOG_ERROR, &line);
}
