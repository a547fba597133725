// The NVTX interface as programs see it: NVIDIA's headers where the build has them
// (REHEARSE_NVIDIA_NVTX), else the same names over our own declarations, so that the target
// programs run on any machine and, where they can, prove that both are one.
#pragma once

#ifdef REHEARSE_NVIDIA_NVTX

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#else

#include <cstdint>

#include <dlfcn.h>

#include "examples/train_cpu/nvtx.h"
#include "profiler/capture/nvtx_abi.h"

using nvtxDomainHandle_t = rehearse::capture::nvtx::DomainHandle;
using nvtxStringHandle_t = rehearse::capture::nvtx::StringHandle;
using nvtxRangeId_t = std::uint64_t;

struct nvtxEventAttributes_t {
  std::uint16_t version;
  std::uint16_t size;
  std::uint32_t category;
  std::int32_t colorType;
  std::uint32_t color;
  std::int32_t payloadType;
  std::int32_t reserved0;
  union {
    std::uint64_t ullValue;
    std::int64_t llValue;
    double dValue;
    std::uint32_t uiValue;
    std::int32_t iValue;
    float fValue;
  } payload;
  std::int32_t messageType;
  union {
    const char* ascii;
    const wchar_t* unicode;
    nvtxStringHandle_t registered;
  } message;
};
static_assert(sizeof(nvtxEventAttributes_t) == sizeof(rehearse::capture::nvtx::EventAttributes));

#define NVTX_VERSION 3
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE static_cast<std::uint16_t>(sizeof(nvtxEventAttributes_t))
enum {
  NVTX_MESSAGE_TYPE_ASCII = 1,
  NVTX_MESSAGE_TYPE_UNICODE = 2,
  NVTX_MESSAGE_TYPE_REGISTERED = 3
};
enum {
  NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 = 1,
  NVTX_PAYLOAD_TYPE_INT64,
  NVTX_PAYLOAD_TYPE_DOUBLE,
  NVTX_PAYLOAD_TYPE_UNSIGNED_INT32,
  NVTX_PAYLOAD_TYPE_INT32,
  NVTX_PAYLOAD_TYPE_FLOAT,
};
#define NVTX_PAYLOAD_TYPE_EXT rehearse::capture::nvtx::kPayloadExtended

struct nvtxPayloadData_t {
  std::uint64_t schemaId;
  std::size_t size;
  const void* payload;
};

struct nvtxPayloadSchemaEntry_t {
  std::uint64_t flags;
  std::uint64_t type;
  const char* name;
  const char* description;
  std::uint64_t arrayOrUnionDetail;
  std::uint64_t offset;
  const void* semantics;
  const void* reserved;
};

struct nvtxPayloadSchemaAttr_t {
  std::uint64_t fieldMask;
  const char* name;
  std::uint64_t type;
  std::uint64_t flags;
  const nvtxPayloadSchemaEntry_t* entries;
  std::size_t numEntries;
  std::size_t payloadStaticSize;
  std::size_t packAlign;
  std::uint64_t schemaId;
  void* extension;
};

#define NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE (1 << 2)
#define NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES (1 << 4)
#define NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES (1 << 5)
#define NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID (1 << 8)
#define NVTX_PAYLOAD_SCHEMA_TYPE_STATIC 1
#define NVTX_PAYLOAD_SCHEMA_ID_STATIC_START (1 << 24)
#define NVTX_PAYLOAD_ENTRY_TYPE_INT 5
#define NVTX_PAYLOAD_ENTRY_TYPE_UINT64 18
#define NVTX_PAYLOAD_ENTRY_TYPE_SIZE 22
#define NVTX_PAYLOAD_ENTRY_TYPE_CSTRING 75
#define NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE 80
#define NVTX_PAYLOAD_ENTRY_FLAG_POINTER (1 << 1)
#define NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE (1 << 10)

namespace nvtx_api {

namespace abi = rehearse::capture::nvtx;

template <class Result, class... Arguments>
Result call(bool in_domain, unsigned slot, Result absent, Arguments... arguments) {
  const auto core = nvtx::detail::core<Result (*)(Arguments...)>(slot);
  const auto domain = reinterpret_cast<Result (*)(Arguments...)>(nvtx::detail::tables.domain[slot]);
  const auto function = in_domain ? domain : core;
  return function ? function(arguments...) : absent;
}
template <class... Arguments>
void notify(bool in_domain, unsigned slot, Arguments... arguments) {
  const auto core = nvtx::detail::core<void (*)(Arguments...)>(slot);
  const auto domain = reinterpret_cast<void (*)(Arguments...)>(nvtx::detail::tables.domain[slot]);
  if (const auto function = in_domain ? domain : core) function(arguments...);
}

/// The functions of the payload extension.
inline std::intptr_t* extension() {
  static std::intptr_t functions[abi::kPayloadSlots] = {};
  static const bool once = [] {
    nvtx::detail::core<void (*)()>(abi::kRangePop);
    void* library = nvtx::detail::tables.library;
    using Initialize = int (*)(abi::ExtensionModule*);
    const auto initialize =
        library ? reinterpret_cast<Initialize>(dlsym(library, "InitializeInjectionNvtxExtension"))
                : nullptr;
    abi::ExtensionSegment segment = {0, abi::kPayloadSlots, functions};
    abi::ExtensionModule module = {
        3, sizeof(abi::ExtensionModule), 2, 0x0104, 1, &segment, nullptr, nullptr};
    return initialize && initialize(&module) != 0;
  }();
  static_cast<void>(once);
  return functions;
}
template <class Result, class... Arguments>
Result call_extension(unsigned slot, Result absent, Arguments... arguments) {
  const auto function = reinterpret_cast<Result (*)(Arguments...)>(extension()[slot]);
  return function ? function(arguments...) : absent;
}

}  // namespace nvtx_api

inline void nvtxMarkA(const char* message) { nvtx_api::notify(false, 2, message); }
inline void nvtxMarkW(const wchar_t* message) { nvtx_api::notify(false, 3, message); }
inline void nvtxMarkEx(const nvtxEventAttributes_t* event) { nvtx_api::notify(false, 1, event); }
inline nvtxRangeId_t nvtxRangeStartEx(const nvtxEventAttributes_t* event) {
  return nvtx_api::call(false, 4, nvtxRangeId_t{0}, event);
}
inline nvtxRangeId_t nvtxRangeStartA(const char* message) {
  return nvtx_api::call(false, 5, nvtxRangeId_t{0}, message);
}
inline nvtxRangeId_t nvtxRangeStartW(const wchar_t* message) {
  return nvtx_api::call(false, 6, nvtxRangeId_t{0}, message);
}
inline void nvtxRangeEnd(nvtxRangeId_t id) { nvtx_api::notify(false, 7, id); }
inline int nvtxRangePushEx(const nvtxEventAttributes_t* event) {
  return nvtx_api::call(false, 8, -2, event);
}
inline int nvtxRangePushA(const char* message) { return nvtx_api::call(false, 9, -2, message); }
inline int nvtxRangePushW(const wchar_t* message) { return nvtx_api::call(false, 10, -2, message); }
inline int nvtxRangePop() { return nvtx_api::call(false, 11, -2); }
inline void nvtxNameCategoryA(std::uint32_t category, const char* name) {
  nvtx_api::notify(false, 12, category, name);
}
inline void nvtxNameCategoryW(std::uint32_t category, const wchar_t* name) {
  nvtx_api::notify(false, 13, category, name);
}
inline void nvtxNameOsThreadA(std::uint32_t thread, const char* name) {
  nvtx_api::notify(false, 14, thread, name);
}
inline void nvtxNameOsThreadW(std::uint32_t thread, const wchar_t* name) {
  nvtx_api::notify(false, 15, thread, name);
}
inline void nvtxDomainMarkEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  nvtx_api::notify(true, 1, domain, event);
}
inline nvtxRangeId_t nvtxDomainRangeStartEx(nvtxDomainHandle_t domain,
                                            const nvtxEventAttributes_t* event) {
  return nvtx_api::call(true, 2, nvtxRangeId_t{0}, domain, event);
}
inline void nvtxDomainRangeEnd(nvtxDomainHandle_t domain, nvtxRangeId_t id) {
  nvtx_api::notify(true, 3, domain, id);
}
inline int nvtxDomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  return nvtx_api::call(true, 4, -2, domain, event);
}
inline int nvtxDomainRangePop(nvtxDomainHandle_t domain) {
  return nvtx_api::call(true, 5, -2, domain);
}
inline void nvtxDomainNameCategoryA(nvtxDomainHandle_t domain, std::uint32_t category,
                                    const char* name) {
  nvtx_api::notify(true, 8, domain, category, name);
}
inline nvtxStringHandle_t nvtxDomainRegisterStringA(nvtxDomainHandle_t domain, const char* text) {
  return nvtx_api::call(true, 10, nvtxStringHandle_t{}, domain, text);
}
inline nvtxStringHandle_t nvtxDomainRegisterStringW(nvtxDomainHandle_t domain,
                                                    const wchar_t* text) {
  return nvtx_api::call(true, 11, nvtxStringHandle_t{}, domain, text);
}
inline nvtxDomainHandle_t nvtxDomainCreateA(const char* name) {
  return nvtx_api::call(true, 12, nvtxDomainHandle_t{}, name);
}
inline nvtxDomainHandle_t nvtxDomainCreateW(const wchar_t* name) {
  return nvtx_api::call(true, 13, nvtxDomainHandle_t{}, name);
}
inline void nvtxDomainDestroy(nvtxDomainHandle_t domain) { nvtx_api::notify(true, 14, domain); }

inline std::uint64_t nvtxPayloadSchemaRegister(nvtxDomainHandle_t domain,
                                               const nvtxPayloadSchemaAttr_t* attributes) {
  return nvtx_api::call_extension(0, std::uint64_t{0}, domain, attributes);
}
inline int nvtxRangePushPayload(nvtxDomainHandle_t domain, const nvtxPayloadData_t* data,
                                std::size_t count) {
  return nvtx_api::call_extension(3, -2, domain, data, count);
}
inline int nvtxRangePopPayload(nvtxDomainHandle_t domain, const nvtxPayloadData_t* data,
                               std::size_t count) {
  return nvtx_api::call_extension(4, -2, domain, data, count);
}

#endif
