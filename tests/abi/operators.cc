// SPDX-License-Identifier: MIT
//
// Every replaceable operator new and delete: an ordinary block, and what happens when there is no
// memory: new-handler, bad_alloc, nullptr. Run without and with the library, outputs equal. Also
// built as a plug-in whose cxx_operators() a C program calls.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

// Not constant for the compiler, which would say that it is too large.
volatile std::size_t too_large = PTRDIFF_MAX - 64;
volatile std::size_t everything = SIZE_MAX;
volatile std::size_t small_size = 44;
constexpr auto at64 = std::align_val_t(64);
constexpr auto at4096 = std::align_val_t(4096);

int handler_calls;

void give_up_at_three() {
    if (++handler_calls == 3)
        std::set_new_handler(nullptr);
}

struct own_exception {};
void throw_own() {
    handler_calls++;
    throw own_exception();
}
void throw_bad_alloc() {
    handler_calls++;
    throw std::bad_alloc();
}

template <typename F> void report(const char *what, F allocate) {
    const char *outcome = "block";
    void *block = nullptr;
    try {
        block = allocate();
        if (block == nullptr)
            outcome = "nullptr";
    } catch (const std::bad_array_new_length &) {
        outcome = "bad_array_new_length";
    } catch (const std::bad_alloc &) {
        outcome = "bad_alloc";
    } catch (const own_exception &) {
        outcome = "the handler's exception";
    }
    std::printf("%s: %s, handler called %d times\n", what, outcome, handler_calls);
    if (block != nullptr)
        std::free(block);
}

template <typename F> void report_all_handlers(const char *what, F allocate) {
    static const struct {
        const char *name;
        std::new_handler handler;
    } handlers[] = {
        { "no handler", nullptr },
        { "handler gives up", give_up_at_three },
        { "handler throws bad_alloc", throw_bad_alloc },
    };
    for (const auto &entry : handlers) {
        char text[120];
        std::snprintf(text, sizeof text, "%s, %s", what, entry.name);
        handler_calls = 0;
        std::set_new_handler(entry.handler);
        report(text, allocate);
        std::set_new_handler(nullptr);
    }
}

template <typename F> void check(const char *what, F allocate, std::size_t alignment) {
    void *block = allocate();
    std::memset(block, 1, 1);
    std::printf("%s: %s\n", what, reinterpret_cast<std::uintptr_t>(block) % alignment == 0 ? "aligned" : "NOT ALIGNED");
    std::free(block);
}

void print_blocks() {
    check("new", [] { return operator new(small_size); }, 16);
    check("new[]", [] { return operator new[](small_size); }, 16);
    check("new nothrow", [] { return operator new(small_size, std::nothrow); }, 16);
    check("new[] nothrow", [] { return operator new[](small_size, std::nothrow); }, 16);
    check("new 4096", [] { return operator new(small_size, at4096); }, 4096);
    check("new[] 64", [] { return operator new[](small_size, at64); }, 64);
    check("new 64 nothrow", [] { return operator new(small_size, at64, std::nothrow); }, 64);
    check("new[] 4096 nothrow", [] { return operator new[](small_size, at4096, std::nothrow); }, 4096);
    check("new of 0", [] { return operator new(small_size - 44); }, 16);
    operator delete(nullptr);
    operator delete(operator new(small_size));
    operator delete[](operator new[](small_size));
    operator delete(operator new(small_size), std::size_t(small_size));
    operator delete[](operator new[](small_size), std::size_t(small_size));
    operator delete(operator new(small_size), std::nothrow);
    operator delete[](operator new[](small_size), std::nothrow);
    operator delete(operator new(small_size, at64), at64);
    operator delete[](operator new[](small_size, at64), at64);
    operator delete(operator new(small_size, at64), std::size_t(small_size), at64);
    operator delete[](operator new[](small_size, at64), std::size_t(small_size), at64);
    operator delete(operator new(small_size, at64), at64, std::nothrow);
    operator delete[](operator new[](small_size, at64), at64, std::nothrow);
    std::printf("12 operators delete\n");
}

void print_exhaustion() {
    report_all_handlers("new", [] { return operator new(too_large); });
    report_all_handlers("new[]", [] { return operator new[](too_large); });
    report_all_handlers("new nothrow", [] { return operator new(too_large, std::nothrow); });
    report_all_handlers("new[] nothrow", [] { return operator new[](too_large, std::nothrow); });
    report_all_handlers("new 4096", [] { return operator new(too_large, at4096); });
    report_all_handlers("new[] 64", [] { return operator new[](too_large, at64); });
    report_all_handlers("new 64 nothrow", [] { return operator new(too_large, at64, std::nothrow); });
    report_all_handlers("new[] 4096 nothrow", [] { return operator new[](too_large, at4096, std::nothrow); });
    report_all_handlers("new of everything", [] { return operator new(everything); });
    report_all_handlers("new int[everything]", [] { return static_cast<void *>(new int[everything / 2]); });
    report_all_handlers("new (nothrow) long[]", [] { return static_cast<void *>(new (std::nothrow) long[too_large / 8]); });
    std::set_new_handler(throw_own);
    handler_calls = 0;
    report("new, handler throws its own", [] { return operator new(too_large); });
    std::set_new_handler(nullptr);
}

} // namespace

extern "C" int cxx_operators(void);
extern "C" int cxx_operators(void) {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    print_blocks();
    print_exhaustion();
    return 0;
}

#ifndef PLUGIN
int main() {
    return cxx_operators();
}
#endif
