// SPDX-License-Identifier: MIT
//
// The installed Level Zero headers, from loader 1.8 on, and what the oldest of them lack. Our own
// declarations stand behind names of ours, so that newer headers can bring theirs.
#ifndef GH_LEVEL_ZERO_ZE_COMPAT_H
#define GH_LEVEL_ZERO_ZE_COMPAT_H

#include <level_zero/ze_api.h>
#include <level_zero/ze_ddi.h>

#define GH_ZE_MEMMAP_EXTENSION "ZE_extension_external_memmap_sysmem"
#define GH_ZE_STYPE_MEMMAP ((ze_structure_type_t)0x00020037)
#define GH_ZE_HOST_READ_ONLY ((ze_host_mem_alloc_flags_t)(1u << 4)) // ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY
#define GH_ZE_STYPE_DDI_HANDLES ((ze_structure_type_t)0x00020027)

#ifdef ZE_EXTERNAL_MEMMAP_SYSMEM_EXT_NAME
typedef ze_external_memmap_sysmem_ext_desc_t gh_ze_memmap_desc_t;
_Static_assert(ZE_STRUCTURE_TYPE_EXTERNAL_MEMMAP_SYSMEM_EXT_DESC == 0x00020037, "memmap descriptor type");
#else
typedef struct gh_ze_memmap_desc {
    ze_structure_type_t stype;
    const void *pNext;
    void *pSystemMemory; // page-aligned
    uint64_t size;       // a multiple of the page size
} gh_ze_memmap_desc_t;
#endif
_Static_assert(sizeof(gh_ze_memmap_desc_t) == 32, "memmap descriptor layout");

#ifdef ZE_DRIVER_DDI_HANDLES_EXT_NAME
typedef ze_driver_ddi_handles_ext_properties_t gh_ze_ddi_handles_t;
#else
typedef struct gh_ze_ddi_handles {
    ze_structure_type_t stype;
    void *pNext;
    uint32_t flags; // bit 0: the driver's handles carry function tables
} gh_ze_ddi_handles_t;
#endif

// What every structure in a pNext chain begins with.
struct gh_ze_base {
    ze_structure_type_t stype;
    const struct gh_ze_base *pNext;
};

// The first structure of this type in a chain, or NULL.
static inline const void *gh_ze_chain_find(const void *chain, ze_structure_type_t stype) {
    for (const struct gh_ze_base *link = chain; link != NULL; link = link->pNext) {
        if (link->stype == stype)
            return link;
    }
    return NULL;
}

#endif
