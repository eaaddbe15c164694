// SPDX-License-Identifier: MIT
//
// Self-test of the simulated driver: sim_selftest CASE [KERNELS.so]. Runs the case once per driver
// that ZE_ENABLE_ALT_DRIVERS names, each time in a forked child; a case that must abort is run a
// second time under GHSIM_STRICT=refuse, where it must be counted instead. SIM_SELFTEST_INIT=drivers
// uses zeInitDrivers. Exit code: 0, 1, or 77 with the reason when no driver here can run the case.
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim_selftest.h"

static const char *kernels_path;

// The driver's page-sized mallocs come through here, so that a case can serve them from an import.
extern void *__libc_memalign(size_t alignment, size_t size);
static char *served;
static size_t served_size;
uintptr_t last_memalign;

int posix_memalign(void **out, size_t alignment, size_t size)
{
    if (served && size <= served_size) {
        *out = served;
        served = NULL;
    } else {
        *out = __libc_memalign(alignment, size);
    }
    last_memalign = (uintptr_t)*out;
    return *out ? 0 : ENOMEM;
}

void serve_driver_from(void *memory, size_t size)
{
    served = memory;
    served_size = size;
}

void *map_pages(size_t count)
{
    void *p = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    return p;
}

ze_result_t wrap_flags(struct fixture *f, void *pointer, size_t size, uint32_t flags)
{
    struct memmap_desc map = {0x20037, NULL, pointer, size};
    ze_host_mem_alloc_desc_t desc = {ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, &map, flags};
    void *out = NULL;
    return zeMemAllocHost(f->context, &desc, size, PAGE, &out);
}

ze_result_t wrap(struct fixture *f, ze_context_handle_t context, void *pointer, size_t size)
{
    struct memmap_desc map = {0x20037, NULL, pointer, size};
    ze_host_mem_alloc_desc_t desc = {ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, &map, 0};
    void *out = NULL;
    const ze_result_t result = zeMemAllocHost(context ? context : f->context, &desc, size, PAGE, &out);
    CHECK(result != ZE_RESULT_SUCCESS || out == pointer);
    return result;
}

ze_command_list_handle_t immediate(struct fixture *f, ze_device_handle_t device)
{
    ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
    ze_command_list_handle_t list;
    OK(zeCommandListCreateImmediate(f->context, device, &desc, &list));
    return list;
}

ze_event_handle_t make_event(struct fixture *f)
{
    ze_event_pool_desc_t pool_desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .count = 1,
                                      .flags = ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP | ZE_EVENT_POOL_FLAG_HOST_VISIBLE};
    ze_event_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC};
    ze_event_pool_handle_t pool;
    ze_event_handle_t event;
    OK(zeEventPoolCreate(f->context, &pool_desc, 1, f->devices, &pool));
    OK(zeEventCreate(pool, &desc, &event));
    return event;
}

struct ghsim_stats stats_of(struct fixture *f)
{
    struct ghsim_stats stats;
    f->stats(&stats);
    CHECK(stats.struct_size == sizeof stats);
    return stats;
}

static void load_module(struct fixture *f)
{
    FILE *file = fopen(kernels_path, "rb");
    CHECK(file && fseek(file, 0, SEEK_END) == 0);
    const long size = ftell(file);
    CHECK(size > 0);
    rewind(file);
    unsigned char *bytes = malloc((size_t)size);
    CHECK(bytes && fread(bytes, 1, (size_t)size, file) == (size_t)size);
    fclose(file);
    ze_module_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_MODULE_DESC, .format = ZE_MODULE_FORMAT_NATIVE,
                             .inputSize = (size_t)size, .pInputModule = bytes};
    OK(zeModuleCreate(f->context, f->devices[0], &desc, &f->module, NULL));
    free(bytes);
}

ze_result_t launch(struct fixture *f, ze_command_list_handle_t list, const char *name, uint32_t items, const void *arg0,
                   size_t size0, const void *arg1, size_t size1, const void *arg2, size_t size2)
{
    if (!f->module) load_module(f);
    ze_kernel_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC, .pKernelName = name};
    ze_kernel_handle_t kernel;
    OK(zeKernelCreate(f->module, &desc, &kernel));
    OK(zeKernelSetGroupSize(kernel, 1, 1, 1));
    if (size0) OK(zeKernelSetArgumentValue(kernel, 0, size0, arg0));
    if (size1) OK(zeKernelSetArgumentValue(kernel, 1, size1, arg1));
    if (size2) OK(zeKernelSetArgumentValue(kernel, 2, size2, arg2));
    ze_group_count_t count = {items, 1, 1};
    const ze_result_t result = zeCommandListAppendLaunchKernel(list, kernel, &count, NULL, 0, NULL);
    OK(zeKernelDestroy(kernel));
    return result;
}

ze_result_t launch1(struct fixture *f, const char *kernel, uint32_t items, void *pointer)
{
    return launch(f, f->list, kernel, items, &pointer, sizeof pointer, NULL, 0, NULL, 0);
}

void *raw_driver(struct fixture *f)
{
    ze_result_t (*translate)(int, void *, void **);
    *(void **)(void *)&translate = dlsym(RTLD_DEFAULT, "zelLoaderTranslateHandle");
    void *raw = NULL;
    if (!translate || translate(0, f->driver, &raw) != ZE_RESULT_SUCCESS || !raw) return f->driver;
    return raw;
}

static uint32_t get_drivers(ze_driver_handle_t *drivers, uint32_t count)
{
    struct { uint32_t stype; const void *pNext; uint32_t flags; } desc = {0x20021, NULL, UINT32_MAX};
    const char *init = getenv("SIM_SELFTEST_INIT");
    if (init && strcmp(init, "drivers") == 0) {
        ze_result_t (*init_drivers)(uint32_t *, ze_driver_handle_t *, void *);
        *(void **)(void *)&init_drivers = dlsym(RTLD_DEFAULT, "zeInitDrivers");
        if (!init_drivers) {
            printf("skip: this loader has no zeInitDrivers\n");
            fflush(stdout);
            _Exit(SKIP);
        }
        uint32_t have = 0;
        OK(init_drivers(&have, NULL, &desc));
        CHECK(have <= count);
        OK(init_drivers(&have, drivers, &desc));
        return have;
    }
    uint32_t have = 0;
    OK(zeInit(0));
    OK(zeDriverGet(&have, NULL));
    CHECK(have <= count);
    OK(zeDriverGet(&have, drivers));
    return have;
}

static void open_fixture(struct fixture *f, const char *path)
{
    const bool npu = strstr(path, "npu") != NULL;
    ze_driver_handle_t drivers[4];
    const uint32_t count = get_drivers(drivers, 4);
    *f = (struct fixture){0};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t devices = 16;
        ze_device_handle_t list[16];
        ze_device_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
        OK(zeDeviceGet(drivers[i], &devices, list));
        OK(zeDeviceGetProperties(list[0], &properties));
        if ((properties.type == ZE_DEVICE_TYPE_VPU) != npu) continue;
        f->driver = drivers[i];
        f->device_count = devices;
        memcpy(f->devices, list, sizeof list);
    }
    CHECK(f->driver);
    f->sim = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    CHECK(f->sim);
    *(void **)(void *)&f->stats = dlsym(f->sim, "ghsim_stats");
    *(void **)(void *)&f->calls = dlsym(f->sim, "ghsim_calls");
    CHECK(f->stats && f->calls);
    const char *scope = getenv("GHSIM_SCOPE");
    f->context_scope = scope ? strcmp(scope, "context") == 0 : npu;
    ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    OK(zeContextCreate(f->driver, &desc, &f->context));
    f->list = immediate(f, f->devices[0]);
}

static void apply_environment(const char *environment)
{
    char copy[512];
    snprintf(copy, sizeof copy, "%s", environment ? environment : "");
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        char *value = strchr(word, '=');
        CHECK(value);
        *value = '\0';
        setenv(word, value + 1, 1);
    }
}

// In the child. With `refuse`, the violation must have been counted.
static void run_child(const struct test_case *test, const char *path, bool refuse)
{
    apply_environment(test->environment);
    if (refuse) setenv("GHSIM_STRICT", "refuse", 1);
    struct fixture f;
    open_fixture(&f, path);
    test->run(&f);
    if (refuse) CHECK(stats_of(&f).reason[test->reason] > 0);
    exit(0);
}

static int judge(const struct test_case *test, bool refuse, int status, const char *text)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIP) return SKIP;
    bool good;
    if (test->reason >= 0 && !refuse) {
        char line[64];
        const char *name[] = {"overlap", "misaligned", "driver memory", "straddle", "illegal address", "not resident",
                              "wrong device", "page moved", "bad handle", "lost event", "call in child", "call after exit"};
        snprintf(line, sizeof line, "ghsim: ABORT: %s:", name[test->reason]);
        good = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && strstr(text, line);
        const char *first = strstr(text, "ghsim: ABORT");
        good = good && !strstr(first + 1, "ghsim: ABORT"); // one line
    } else {
        good = WIFEXITED(status) && WEXITSTATUS(status) == test->exit_code;
    }
    if (good && test->stderr_part && !strstr(text, test->stderr_part)) good = false;
    if (!good)
        fprintf(stderr, "%s%s: status %#x, stderr:\n%s\n", test->name, refuse ? " (refuse)" : "", (unsigned)status, text);
    return good ? 0 : 1;
}

static int run_once(const struct test_case *test, const char *path, bool refuse)
{
    int ends[2];
    char text[8192];
    size_t used = 0;
    fflush(NULL);
    CHECK(pipe(ends) == 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        run_child(test, path, refuse);
    }
    close(ends[1]);
    ssize_t n;
    while (used < sizeof text - 1 && (n = read(ends[0], text + used, sizeof text - 1 - used)) > 0) used += (size_t)n;
    text[used] = '\0';
    close(ends[0]);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    return judge(test, refuse, status, text);
}

static const struct test_case *const all_cases[] = {normal_cases, switch_cases, strict_cases};

static const struct test_case *find_case(const char *name)
{
    for (size_t i = 0; i < sizeof all_cases / sizeof all_cases[0]; i++)
        for (const struct test_case *t = all_cases[i]; t->name; t++)
            if (strcmp(t->name, name) == 0) return t;
    return NULL;
}

static int list_cases(void)
{
    for (size_t i = 0; i < sizeof all_cases / sizeof all_cases[0]; i++)
        for (const struct test_case *t = all_cases[i]; t->name; t++) puts(t->name);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) return list_cases();
    const char *drivers = getenv("ZE_ENABLE_ALT_DRIVERS");
    const struct test_case *test = argc >= 3 ? find_case(argv[1]) : NULL;
    if (!test || !drivers) {
        fprintf(stderr, "usage: ZE_ENABLE_ALT_DRIVERS=DRIVER[,DRIVER] %s CASE KERNELS.so\n", argv[0]);
        return 2;
    }
    kernels_path = argv[2];
    char copy[4096];
    int done = 0, skipped = 0;
    snprintf(copy, sizeof copy, "%s", drivers);
    char *rest = NULL;
    for (char *path = strtok_r(copy, ",", &rest); path; path = strtok_r(NULL, ",", &rest)) {
        const bool npu = strstr(path, "npu") != NULL;
        if (test->scope != ANY_SCOPE && npu != (test->scope == CONTEXT_SCOPE)) continue;
        for (int refuse = 0; refuse <= (test->reason >= 0 ? 1 : 0); refuse++) {
            const int result = run_once(test, path, refuse != 0);
            if (result == SKIP) skipped++;
            else if (result != 0) return 1;
            else done++;
        }
    }
    if (done == 0) {
        printf("skip: %s\n", skipped ? "the loader lacks a function" : "no driver of that scope is loaded");
        return SKIP;
    }
    return 0;
}
