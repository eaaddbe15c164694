# SPDX-License-Identifier: MIT
#
# The seed's table for Julia's own arrays, small ones too, which Julia keeps in pools that it maps
# itself:
#     julia wraps.jl KERNELS|- NAME
# As table.c: all wraps of a row live together, a kernel adds 1 in place; with "-" there is no GPU
# that gives results, and questions and fills must succeed. The garbage collector runs in between.
# Base Julia only, 1.5 and later.

const loader = "libze_loader.so.1"
const Handle = Ptr{Cvoid}
const PAGE = UInt(4096)
const UNINITIALIZED = 0x78000001
const SIZES = (16, 256, 2048, 4096, 40960, 4194304)

struct ContextDesc; stype::UInt32; next::Handle; flags::UInt32; end
struct QueueDesc; stype::UInt32; next::Handle; ordinal::UInt32; index::UInt32; flags::UInt32; mode::UInt32; priority::UInt32; end
struct ModuleDesc; stype::UInt32; next::Handle; format::UInt32; size::Csize_t; input::Handle; build::Handle; constants::Handle; end
struct KernelDesc; stype::UInt32; next::Handle; flags::UInt32; name::Handle; end
struct HostDesc; stype::UInt32; next::Handle; flags::UInt32; end
struct MemmapDesc; stype::UInt32; next::Handle; pointer::Handle; size::UInt64; end

function must(result, what)
    result == 0 && return
    println(stderr, what, ": error 0x", string(result, base = 16))
    exit(1)
end

function open_gpu()
    count, driver, device = Ref{UInt32}(1), Ref{Handle}(C_NULL), Ref{Handle}(C_NULL)
    context, list = Ref{Handle}(C_NULL), Ref{Handle}(C_NULL)
    must(ccall((:zeInit, loader), UInt32, (UInt32,), 0), "zeInit")
    must(ccall((:zeDriverGet, loader), UInt32, (Ptr{UInt32}, Ptr{Handle}), count, driver), "zeDriverGet")
    must(ccall((:zeDeviceGet, loader), UInt32, (Handle, Ptr{UInt32}, Ptr{Handle}), driver[], count, device), "zeDeviceGet")
    must(ccall((:zeContextCreate, loader), UInt32, (Handle, Ref{ContextDesc}, Ptr{Handle}),
               driver[], ContextDesc(0xd, C_NULL, 0), context), "zeContextCreate")
    must(ccall((:zeCommandListCreateImmediate, loader), UInt32, (Handle, Handle, Ref{QueueDesc}, Ptr{Handle}),
               context[], device[], QueueDesc(0xe, C_NULL, 0, 0, 0, 1, 0), list), "zeCommandListCreateImmediate")
    return (device = device[], context = context[], list = list[])
end

function get_kernel(gpu, kernels)
    code, name = read(kernels), Vector{UInt8}("add1_u8\0")
    modul, kernel = Ref{Handle}(C_NULL), Ref{Handle}(C_NULL)
    GC.@preserve code name begin
        must(ccall((:zeModuleCreate, loader), UInt32, (Handle, Handle, Ref{ModuleDesc}, Ptr{Handle}, Handle), gpu.context,
                   gpu.device, ModuleDesc(0x1b, C_NULL, 1, length(code), pointer(code), C_NULL, C_NULL), modul, C_NULL),
             "zeModuleCreate")
        must(ccall((:zeKernelCreate, loader), UInt32, (Handle, Ref{KernelDesc}, Ptr{Handle}),
                   modul[], KernelDesc(0x1d, C_NULL, 0, pointer(name)), kernel), "zeKernelCreate")
    end
    return kernel[]
end

function pages(array)
    first_byte = UInt(pointer(array))
    start = first_byte & ~(PAGE - 1)
    return start, ((first_byte + sizeof(array) + PAGE - 1) & ~(PAGE - 1)) - start
end

# As oneAPI.jl does it.
function wrap(gpu, array, has_results)
    start, size = pages(array)
    memmap, base = Ref(MemmapDesc(0x00020037, C_NULL, Handle(start), size)), Ref{Handle}(C_NULL)
    result = GC.@preserve memmap ccall((:zeMemAllocHost, loader), UInt32, (Handle, Ref{HostDesc}, Csize_t, Csize_t, Ptr{Handle}),
        gpu.context, HostDesc(0x16, Base.unsafe_convert(Handle, memmap), 0), size, PAGE, base)
    (result == 0 && base[] == Handle(start)) || return false
    result = ccall((:zeContextMakeMemoryResident, loader), UInt32, (Handle, Handle, Handle, Csize_t),
                   gpu.context, gpu.device, base[], size)
    return result == 0 || (!has_results && result == UNINITIALIZED)
end

unwrap(gpu, array) = ccall((:zeMemFree, loader), UInt32, (Handle, Handle), gpu.context, Handle(pages(array)[1])) == 0

function launch(gpu, kernel, array)
    group = 256
    while length(array) % group != 0; group >>= 1; end
    argument, groups = Ref(Handle(pointer(array))), UInt32[length(array) ÷ group, 1, 1]
    return ccall((:zeKernelSetGroupSize, loader), UInt32, (Handle, UInt32, UInt32, UInt32), kernel, group, 1, 1) == 0 &&
        ccall((:zeKernelSetArgumentValue, loader), UInt32, (Handle, UInt32, Csize_t, Ptr{Handle}), kernel, 0, 8, argument) == 0 &&
        ccall((:zeCommandListAppendLaunchKernel, loader), UInt32, (Handle, Handle, Ptr{UInt32}, Handle, UInt32, Handle),
              gpu.list, kernel, groups, C_NULL, 0, C_NULL) == 0
end

function ask(gpu, array)
    start, size = pages(array)
    base, found, zero = Ref{Handle}(C_NULL), Ref{Csize_t}(0), Ref{UInt8}(0)
    return ccall((:zeMemGetAddressRange, loader), UInt32, (Handle, Handle, Ptr{Handle}, Ptr{Csize_t}),
                 gpu.context, Handle(start), base, found) == 0 && base[] == Handle(start) && found[] >= size &&
        ccall((:zeCommandListAppendMemoryFill, loader), UInt32,
              (Handle, Handle, Ptr{UInt8}, Csize_t, Csize_t, Handle, UInt32, Handle),
              gpu.list, pointer(array), zero, 1, length(array), C_NULL, 0, C_NULL) == 0
end

function row(gpu, kernel, size, count)
    pattern(i) = UInt8[(i * 31 + k * 7) % UInt8 for k in 1:size]
    arrays = [pattern(i) for i in 1:count]
    wrapped = [wrap(gpu, array, kernel != C_NULL) for array in arrays]
    right = copy(wrapped)
    for odd in 0:1 # every second array first: their neighbours must stay as they are
        for i in (1 + odd):2:count
            wrapped[i] && !(kernel != C_NULL ? launch(gpu, kernel, arrays[i]) : ask(gpu, arrays[i])) && (right[i] = false)
        end
        for i in 1:count
            times = kernel != C_NULL && wrapped[i] && (i - 1) % 2 <= odd ? 0x01 : 0x00
            arrays[i] == pattern(i) .+ times || (right[i] = false)
        end
        GC.gc()
    end
    for i in 1:count
        wrapped[i] && !unwrap(gpu, arrays[i]) && (right[i] = false)
    end
    return sum(wrapped), sum(right)
end

function main(kernels, name)
    gpu = open_gpu()
    kernel = kernels == "-" ? C_NULL : get_kernel(gpu, kernels)
    good = true
    for size in SIZES
        count = size < 1 << 20 ? 100 : 20
        wrapped, right = row(gpu, kernel, size, count)
        label = size % (1 << 20) == 0 ? "$(size >> 20)MB" : size % 1024 == 0 ? "$(size >> 10)KB" : "$(size)B"
        println("FIGURE $(name)_julia_wrapped_$label $wrapped of_$count")
        println("FIGURE $(name)_julia_right_$label $right of_$count")
        good = good && wrapped == right == count
    end
    must(ccall((:zeCommandListDestroy, loader), UInt32, (Handle,), gpu.list), "zeCommandListDestroy")
    must(ccall((:zeContextDestroy, loader), UInt32, (Handle,), gpu.context), "zeContextDestroy")
    return good ? 0 : 1
end

if length(ARGS) != 2
    println(stderr, "usage: julia wraps.jl KERNELS|- NAME")
    exit(2)
end
exit(main(ARGS...))
