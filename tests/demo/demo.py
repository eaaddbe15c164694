#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The demo's table from Python: NumPy's arrays are wrapped through ctypes.

    demo.py case KERNELS SIZE COUNT

Like demo.c: allocates COUNT arrays of SIZE bytes, wraps each (rounded out to
pages, memmap import, made resident), adds 1 to every byte on the GPU in place,
checks them and their neighbours. An ordinary client of the Level Zero loader.
"""
import ctypes
import os
import sys

import numpy as np

p, u32, u64, size_t = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t
PAGE = 4096


def struct(name, *fields):
    return type(name, (ctypes.Structure,), {"_fields_": [("stype", u32), ("next", p), *fields]})


ContextDesc = struct("ContextDesc", ("flags", u32))
QueueDesc = struct("QueueDesc", ("ordinal", u32), ("index", u32), ("flags", u32), ("mode", u32), ("priority", u32))
ModuleDesc = struct("ModuleDesc", ("format", u32), ("size", size_t), ("input", p), ("build", p), ("constants", p))
KernelDesc = struct("KernelDesc", ("flags", u32), ("name", ctypes.c_char_p))
HostDesc = struct("HostDesc", ("flags", u32))
MemmapDesc = struct("MemmapDesc", ("pointer", p), ("size", u64))
DEVICE_PROPERTIES, CONTEXT, QUEUE, HOST_ALLOC, MODULE, KERNEL, MEMMAP = 0x3, 0xD, 0xE, 0x16, 0x1B, 0x1D, 0x20037
MODE_SYNCHRONOUS, FORMAT_SPIRV, FORMAT_NATIVE, TYPE_GPU = 1, 0, 1, 1

ze = ctypes.CDLL("libze_loader.so.1")


def must(result, what):
    if result != 0:
        print(f"demo: {what}: error {result & 0xFFFFFFFF:#x}", file=sys.stderr)
        sys.exit(3)


class Gpu:
    def __init__(self):
        count = u32(0)
        if ze.zeInit(0) != 0 or ze.zeDriverGet(ctypes.byref(count), None) != 0 or count.value == 0:
            must(1, "no Level Zero driver")
        drivers = (p * count.value)()
        must(ze.zeDriverGet(ctypes.byref(count), drivers), "zeDriverGet")
        self.device = None
        for driver in drivers:
            found, devices = u32(16), (p * 16)()
            if ze.zeDeviceGet(p(driver), ctypes.byref(found), devices) != 0:
                continue
            for device in devices[: found.value]:
                properties = (ctypes.c_char * 4096)()
                ctypes.cast(properties, ctypes.POINTER(u32))[0] = DEVICE_PROPERTIES
                must(ze.zeDeviceGetProperties(p(device), properties), "zeDeviceGetProperties")
                if self.device is None and u32.from_buffer(properties, 16).value == TYPE_GPU:
                    self.driver, self.device = p(driver), p(device)
                    self.name = properties.raw[112:368].split(b"\0")[0].decode()
        if self.device is None:
            must(1, "no GPU")
        self.context, self.list = p(), p()
        must(ze.zeContextCreate(self.driver, ctypes.byref(ContextDesc(CONTEXT)), ctypes.byref(self.context)), "zeContextCreate")
        queue = QueueDesc(QUEUE, mode=MODE_SYNCHRONOUS)
        must(ze.zeCommandListCreateImmediate(self.context, self.device, ctypes.byref(queue), ctypes.byref(self.list)),
             "zeCommandListCreateImmediate")

    def kernel(self, kernels, name):
        folder = os.path.isdir(kernels)
        with open(f"{kernels}/{name}.spv" if folder else kernels, "rb") as file:
            code = file.read()
        text = ctypes.create_string_buffer(code, len(code))
        desc = ModuleDesc(MODULE, None, FORMAT_SPIRV if folder else FORMAT_NATIVE, len(code), ctypes.addressof(text))
        module, kernel = p(), p()
        must(ze.zeModuleCreate(self.context, self.device, ctypes.byref(desc), ctypes.byref(module), None), "zeModuleCreate")
        must(ze.zeKernelCreate(module, ctypes.byref(KernelDesc(KERNEL, None, 0, name.encode())), ctypes.byref(kernel)),
             "zeKernelCreate")
        return kernel

    def wrap(self, array):
        """The wrap's (base, size), or the driver's error as a negative number."""
        begin = array.ctypes.data // PAGE * PAGE
        end = -(-(array.ctypes.data + array.nbytes) // PAGE) * PAGE
        memmap = MemmapDesc(MEMMAP, None, begin, end - begin)
        host = HostDesc(HOST_ALLOC, ctypes.addressof(memmap))
        base = p()
        result = ze.zeMemAllocHost(self.context, ctypes.byref(host), size_t(end - begin), size_t(PAGE), ctypes.byref(base))
        if result == 0 and base.value != begin:
            ze.zeMemFree(self.context, base)
            return -1
        if result == 0:
            result = ze.zeContextMakeMemoryResident(self.context, self.device, base, size_t(end - begin))
            if result != 0:
                ze.zeMemFree(self.context, base)
        return (begin, end - begin) if result == 0 else -(result & 0xFFFFFFFF)

    def unwrap(self, wrap):
        evicted = ze.zeContextEvictMemory(self.context, self.device, p(wrap[0]), size_t(wrap[1]))
        return ze.zeMemFree(self.context, p(wrap[0])) == 0 and evicted == 0

    def run(self, kernel, array):
        group = 256
        while array.nbytes % group:
            group //= 2
        pointer, groups = p(array.ctypes.data), (u32 * 3)(array.nbytes // group, 1, 1)
        return (ze.zeKernelSetGroupSize(kernel, group, 1, 1) == 0
                and ze.zeKernelSetArgumentValue(kernel, 0, size_t(8), ctypes.byref(pointer)) == 0
                and ze.zeCommandListAppendLaunchKernel(self.list, kernel, groups, None, 0, None) == 0)


def main():
    if len(sys.argv) != 5 or sys.argv[1] != "case":
        print("usage: demo.py case KERNELS SIZE COUNT", file=sys.stderr)
        return 2
    kernels, size, count = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    pattern = lambda i: ((np.arange(size) * 7 + i * 31) % 256).astype(np.uint8)
    arrays = [np.empty(size, np.uint8) for _ in range(count)]
    for i, array in enumerate(arrays):
        array[:] = pattern(i)
    gpu = Gpu()
    print("DEVICE", gpu.name, flush=True)
    add1 = gpu.kernel(kernels, "add1_u8")
    wraps = [gpu.wrap(array) for array in arrays]
    good = [isinstance(wrap, tuple) for wrap in wraps]
    wrong = [False] * count
    for odd in (0, 1):  # every second array first: their neighbours must stay as they are
        for i in range(odd, count, 2):
            if good[i] and not gpu.run(add1, arrays[i]):
                wrong[i] = True
        for i in range(count):
            times = 1 if good[i] and i % 2 <= odd and not wrong[i] else 0
            if not np.array_equal(arrays[i], pattern(i) + np.uint8(times)):
                wrong[i] = True
    right = sum(g and not w for g, w in zip(good, wrong))
    unwrapped = sum(gpu.unwrap(wrap) for wrap in wraps if isinstance(wrap, tuple))
    first_error = next((-wrap for wrap in wraps if not isinstance(wrap, tuple)), 0)
    print(f"CASE size {size} count {count} wrapped {sum(good)} right {right} unwrapped {unwrapped} first_error {first_error:#x}",
          flush=True)
    intact = all(w or np.array_equal(a, pattern(i) + np.uint8(g))
                 for i, (a, g, w) in enumerate(zip(arrays, good, wrong)))
    must(ze.zeCommandListDestroy(gpu.list), "zeCommandListDestroy")
    must(ze.zeContextDestroy(gpu.context), "zeContextDestroy")
    return 0 if intact and right == sum(good) == unwrapped else 4


if __name__ == "__main__":
    sys.exit(main())
