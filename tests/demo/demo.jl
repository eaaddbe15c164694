# SPDX-License-Identifier: MIT
#
# The demo's table from Julia: its malloc'ed arrays are wrapped through ccall.
#     julia demo.jl case KERNELS SIZE COUNT
# Like demo.c: allocates COUNT arrays of SIZE bytes, wraps each (rounded out to
# pages, memmap import, made resident), adds 1 to every byte on the GPU in place,
# checks them and their neighbours. Base Julia only, 1.5 and later.

const loader = "libze_loader.so.1"
const Handle = Ptr{Cvoid}
const PAGE = UInt(4096)

struct ContextDesc; stype::UInt32; next::Handle; flags::UInt32; end
struct QueueDesc; stype::UInt32; next::Handle; ordinal::UInt32; index::UInt32; flags::UInt32; mode::UInt32; priority::UInt32; end
struct ModuleDesc; stype::UInt32; next::Handle; format::UInt32; size::Csize_t; input::Handle; build::Handle; constants::Handle; end
struct KernelDesc; stype::UInt32; next::Handle; flags::UInt32; name::Handle; end
struct HostDesc; stype::UInt32; next::Handle; flags::UInt32; end
struct MemmapDesc; stype::UInt32; next::Handle; pointer::Handle; size::UInt64; end

function must(result, what)
    result == 0 && return
    println(stderr, "demo: ", what, ": error 0x", string(result, base = 16))
    exit(3)
end

# The first GPU of the first driver that has one.
function first_gpu()
    count = Ref{UInt32}(0)
    must(ccall((:zeInit, loader), UInt32, (UInt32,), 0), "zeInit")
    must(ccall((:zeDriverGet, loader), UInt32, (Ptr{UInt32}, Ptr{Handle}), count, C_NULL), "zeDriverGet")
    drivers = fill(C_NULL, count[])
    must(ccall((:zeDriverGet, loader), UInt32, (Ptr{UInt32}, Ptr{Handle}), count, drivers), "zeDriverGet")
    for driver in drivers
        found = Ref{UInt32}(16)
        devices = fill(C_NULL, 16)
        ccall((:zeDeviceGet, loader), UInt32, (Handle, Ptr{UInt32}, Ptr{Handle}), driver, found, devices) == 0 || continue
        for device in devices[1:found[]]
            properties = zeros(UInt8, 4096)
            properties[1] = 0x03
            must(ccall((:zeDeviceGetProperties, loader), UInt32, (Handle, Ptr{UInt8}), device, properties), "zeDeviceGetProperties")
            name = String(properties[113:(findnext(iszero, properties, 113) - 1)])
            reinterpret(UInt32, properties[17:20])[1] == 1 && return driver, device, name
        end
    end
    must(1, "no GPU")
end

function open_gpu()
    driver, device, name = first_gpu()
    context, list = Ref{Handle}(C_NULL), Ref{Handle}(C_NULL)
    must(ccall((:zeContextCreate, loader), UInt32, (Handle, Ref{ContextDesc}, Ptr{Handle}),
               driver, ContextDesc(0xd, C_NULL, 0), context), "zeContextCreate")
    must(ccall((:zeCommandListCreateImmediate, loader), UInt32, (Handle, Handle, Ref{QueueDesc}, Ptr{Handle}),
               context[], device, QueueDesc(0xe, C_NULL, 0, 0, 0, 1, 0), list), "zeCommandListCreateImmediate")
    return (device = device, context = context[], list = list[], name = name)
end

function get_kernel(gpu, kernels, name)
    folder = isdir(kernels)
    code = read(folder ? joinpath(kernels, name * ".spv") : kernels)
    kernel_name = Vector{UInt8}(name * "\0")
    modul, kernel = Ref{Handle}(C_NULL), Ref{Handle}(C_NULL)
    GC.@preserve code kernel_name begin
        desc = ModuleDesc(0x1b, C_NULL, folder ? 0 : 1, length(code), pointer(code), C_NULL, C_NULL)
        must(ccall((:zeModuleCreate, loader), UInt32, (Handle, Handle, Ref{ModuleDesc}, Ptr{Handle}, Handle),
                   gpu.context, gpu.device, desc, modul, C_NULL), "zeModuleCreate")
        must(ccall((:zeKernelCreate, loader), UInt32, (Handle, Ref{KernelDesc}, Ptr{Handle}),
                   modul[], KernelDesc(0x1d, C_NULL, 0, pointer(kernel_name)), kernel), "zeKernelCreate")
    end
    return kernel[]
end

# 0 when the array is wrapped, else the driver's error. As oneAPI.jl does it.
function wrap(gpu, array)
    first_byte = UInt(pointer(array))
    start = first_byte & ~(PAGE - 1)
    size = ((first_byte + sizeof(array) + PAGE - 1) & ~(PAGE - 1)) - start
    memmap = Ref(MemmapDesc(0x00020037, C_NULL, Handle(start), size))
    base = Ref{Handle}(C_NULL)
    result = GC.@preserve memmap begin
        host = HostDesc(0x16, Base.unsafe_convert(Handle, memmap), 0)
        ccall((:zeMemAllocHost, loader), UInt32, (Handle, Ref{HostDesc}, Csize_t, Csize_t, Ptr{Handle}),
              gpu.context, host, size, PAGE, base)
    end
    result == 0 || return result
    base[] == Handle(start) || return 0x1
    return ccall((:zeContextMakeMemoryResident, loader), UInt32, (Handle, Handle, Handle, Csize_t),
                 gpu.context, gpu.device, base[], size)
end

function unwrap(gpu, array)
    first_byte = UInt(pointer(array))
    start = first_byte & ~(PAGE - 1)
    size = ((first_byte + sizeof(array) + PAGE - 1) & ~(PAGE - 1)) - start
    evicted = ccall((:zeContextEvictMemory, loader), UInt32, (Handle, Handle, Handle, Csize_t),
                    gpu.context, gpu.device, Handle(start), size)
    freed = ccall((:zeMemFree, loader), UInt32, (Handle, Handle), gpu.context, Handle(start))
    return evicted == 0 && freed == 0
end

function launch(gpu, kernel, array)
    group = 256
    while length(array) % group != 0; group >>= 1; end
    argument = Ref(Handle(pointer(array)))
    groups = UInt32[length(array) ÷ group, 1, 1]
    return GC.@preserve array ccall((:zeKernelSetGroupSize, loader), UInt32, (Handle, UInt32, UInt32, UInt32), kernel, group, 1, 1) == 0 &&
        ccall((:zeKernelSetArgumentValue, loader), UInt32, (Handle, UInt32, Csize_t, Ptr{Handle}), kernel, 0, 8, argument) == 0 &&
        ccall((:zeCommandListAppendLaunchKernel, loader), UInt32, (Handle, Handle, Ptr{UInt32}, Handle, UInt32, Handle),
              gpu.list, kernel, groups, C_NULL, 0, C_NULL) == 0
end

function main(kernels, size, count)
    pattern(i) = UInt8[(i * 31 + k * 7) % UInt8 for k in 1:size]
    arrays = [Vector{UInt8}(undef, size) for _ in 1:count]
    for i in 1:count; arrays[i] .= pattern(i); end
    gpu = open_gpu()
    println("DEVICE ", gpu.name); flush(stdout)
    add1 = get_kernel(gpu, kernels, "add1_u8")
    answers = [wrap(gpu, array) for array in arrays]
    good = answers .== 0
    wrong = falses(count)
    for odd in 0:1 # every second array first: their neighbours must stay as they are
        for i in (1 + odd):2:count
            good[i] && !launch(gpu, add1, arrays[i]) && (wrong[i] = true)
        end
        for i in 1:count
            times = good[i] && (i - 1) % 2 <= odd && !wrong[i] ? 0x01 : 0x00
            arrays[i] == pattern(i) .+ times || (wrong[i] = true)
        end
        GC.gc()
    end
    right = sum(good .& .!wrong)
    unwrapped = sum(Bool[unwrap(gpu, arrays[i]) for i in 1:count if good[i]])
    first_error = all(good) ? UInt32(0) : answers[findfirst(!, good)]
    println("CASE size $size count $count wrapped $(sum(good)) right $right unwrapped $unwrapped first_error 0x", string(first_error, base = 16))
    flush(stdout)
    intact = all(wrong[i] || arrays[i] == pattern(i) .+ UInt8(good[i]) for i in 1:count)
    must(ccall((:zeCommandListDestroy, loader), UInt32, (Handle,), gpu.list), "zeCommandListDestroy")
    must(ccall((:zeContextDestroy, loader), UInt32, (Handle,), gpu.context), "zeContextDestroy")
    return intact && right == sum(good) == unwrapped ? 0 : 4
end

if length(ARGS) != 4 || ARGS[1] != "case"
    println(stderr, "usage: demo.jl case KERNELS SIZE COUNT")
    exit(2)
end
exit(main(ARGS[2], parse(Int, ARGS[3]), parse(Int, ARGS[4])))
