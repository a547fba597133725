// The part of the NVTX version 3 interface that the capture library and its tests use, declared
// here so that neither needs NVIDIA's headers. If those are found, tests/abi compares the two.
//
// NVTX is header-only: each program and library that uses it holds its own table of function
// pointers. On the first call it loads the library that NVTX_INJECTION64_PATH names and calls
// InitializeInjectionNvtx2 there with a function that gives access to that table. The payload
// extension does the same through InitializeInjectionNvtxExtension.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rehearse::capture::nvtx {

inline constexpr int kNoPushPopTracking = -2;  ///< level that a push returns when nothing records

using DomainHandle = const struct Domain*;
using StringHandle = const struct String*;
using RangeId = std::uint64_t;

enum MessageType : std::int32_t { kMessageAscii = 1, kMessageWide = 2, kMessageRegistered = 3 };

enum PayloadType : std::int32_t {
  kPayloadUint64 = 1,
  kPayloadInt64 = 2,
  kPayloadDouble = 3,
  kPayloadUint32 = 4,
  kPayloadInt32 = 5,
  kPayloadFloat = 6,
  /// The payload extension: `reserved` counts the PayloadData that `payload.u64` points to.
  kPayloadExtended = static_cast<std::int32_t>(0xDFBD0009),
};

union Message {
  const char* ascii;
  const wchar_t* wide;
  StringHandle registered;
};

struct EventAttributes {
  std::uint16_t version;
  std::uint16_t size;
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type;
  std::int32_t reserved;
  union {
    std::uint64_t u64;
    std::int64_t i64;
    double f64;
    std::uint32_t u32;
    std::int32_t i32;
    float f32;
  } payload;
  std::int32_t message_type;
  Message message;
};
static_assert(sizeof(EventAttributes) == 48);

// Tables of callbacks: a module, and a slot in it.
enum Module : std::int32_t { kModuleCore = 1, kModuleCore2 = 5 };

enum CoreSlot : unsigned {
  kMarkEx = 1,
  kMarkA = 2,
  kMarkW = 3,
  kRangeStartEx = 4,
  kRangeStartA = 5,
  kRangeStartW = 6,
  kRangeEnd = 7,
  kRangePushEx = 8,
  kRangePushA = 9,
  kRangePushW = 10,
  kRangePop = 11,
  kNameCategoryA = 12,
  kNameCategoryW = 13,
  kNameOsThreadA = 14,
  kNameOsThreadW = 15,
  kCoreSlots = 16,
};

enum Core2Slot : unsigned {
  kDomainMarkEx = 1,
  kDomainRangeStartEx = 2,
  kDomainRangeEnd = 3,
  kDomainRangePushEx = 4,
  kDomainRangePop = 5,
  kDomainNameCategoryA = 8,
  kDomainNameCategoryW = 9,
  kDomainRegisterStringA = 10,
  kDomainRegisterStringW = 11,
  kDomainCreateA = 12,
  kDomainCreateW = 13,
  kDomainDestroy = 14,
  kCore2Slots = 16,
};

using Function = void (*)();
/// Pointers to the client's function pointers; slot 0 and unknown ones are null.
using FunctionTable = Function**;

enum ExportTable : std::uint32_t { kExportCallbacks = 1, kExportVersion = 3 };

struct CallbackExports {
  std::size_t struct_size;
  /// Returns a module's table and its number of slots, slot 0 included. Returns 0 if there is no
  /// such module.
  int (*module_table)(std::int32_t module, FunctionTable* table, unsigned* slots);
};

struct VersionExports {
  std::size_t struct_size;
  std::uint32_t version;
  std::uint32_t reserved;
  void (*set_tool_version)(std::uint32_t version);
};

using GetExportTable = const void* (*)(std::uint32_t table);

// The payload extension.
inline constexpr std::uint16_t kPayloadModule = 2;
/// The oldest version whose schemas have the layout below.
inline constexpr std::uint16_t kPayloadOldest = 0x0103;
inline constexpr std::uint16_t kPayloadNewest = 0x01FF;

enum PayloadSlot : unsigned {
  kSchemaRegister = 0,
  kMarkPayload = 2,
  kRangePushPayload = 3,
  kRangePopPayload = 4,
  kRangeStartPayload = 5,
  kRangeEndPayload = 6,
  kPayloadSlots = 7,
};

struct ExtensionSegment {
  std::size_t id;
  std::size_t slots;
  std::intptr_t* functions;
};

struct ExtensionModule {
  std::uint16_t nvtx_version;
  std::uint16_t struct_size;
  std::uint16_t module;
  std::uint16_t compatibility;
  std::size_t segments_count;
  ExtensionSegment* segments;
  std::intptr_t (*get_export)(std::uint32_t);
  const void* info;
};

struct PayloadData {
  std::uint64_t schema;
  std::size_t size;  ///< SIZE_MAX: the schema says
  const void* payload;
};

inline constexpr std::uint64_t kStaticSchemas = std::uint64_t{1} << 24;
inline constexpr std::uint64_t kDynamicSchemas = std::uint64_t{1} << 32;

/// Types of the schema entries that are read.
enum EntryType : std::uint64_t {
  kEntryChar = 1,
  kEntryInt = 5,
  kEntryUint = 6,
  kEntryLong = 7,
  kEntryUlong = 8,
  kEntryLongLong = 9,
  kEntryUlongLong = 10,
  kEntryInt32 = 15,
  kEntryUint32 = 16,
  kEntryInt64 = 17,
  kEntryUint64 = 18,
  kEntrySize = 22,
  kEntryCString = 75,
  kEntryCStringUtf8 = 76,
  kEntryRegistered = 80,
};

enum EntryFlag : std::uint64_t { kEntryPointer = 1 << 1, kEntryMessage = 1 << 10 };
/// An entry with any of these flags is not a single value stored in place.
inline constexpr std::uint64_t kEntryNotScalar = (1 << 1) | (1 << 2) | (1 << 3) | (7 << 4);

struct SchemaEntry {
  std::uint64_t flags;
  std::uint64_t type;
  const char* name;
  const char* description;
  std::uint64_t detail;
  std::uint64_t offset;
  const void* semantics;
  const void* reserved;
};

enum SchemaField : std::uint64_t {
  kSchemaEntries = 1 << 4,
  kSchemaCount = 1 << 5,
  kSchemaId = 1 << 8
};

struct SchemaAttributes {
  std::uint64_t fields;
  const char* name;
  std::uint64_t type;
  std::uint64_t flags;
  const SchemaEntry* entries;
  std::size_t count;
  std::size_t static_size;
  std::size_t alignment;
  std::uint64_t id;
};

}  // namespace rehearse::capture::nvtx
