// Compares our declarations of NVTX with NVIDIA's, where the toolkit's headers are found. No code.
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include "profiler/capture/nvtx_abi.h"

namespace rehearse::capture::nvtx {

#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs))
#define SAME_PLACE(ours, our_field, theirs, their_field)                      \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) && \
                sizeof(ours::our_field) == sizeof(theirs::their_field))

SAME_SIZE(EventAttributes, nvtxEventAttributes_t);
SAME_PLACE(EventAttributes, size, nvtxEventAttributes_t, size);
SAME_PLACE(EventAttributes, category, nvtxEventAttributes_t, category);
SAME_PLACE(EventAttributes, payload_type, nvtxEventAttributes_t, payloadType);
SAME_PLACE(EventAttributes, reserved, nvtxEventAttributes_t, reserved0);
SAME_PLACE(EventAttributes, payload, nvtxEventAttributes_t, payload);
SAME_PLACE(EventAttributes, message_type, nvtxEventAttributes_t, messageType);
SAME_PLACE(EventAttributes, message, nvtxEventAttributes_t, message);

static_assert(int{kMessageAscii} == NVTX_MESSAGE_TYPE_ASCII);
static_assert(int{kMessageWide} == NVTX_MESSAGE_TYPE_UNICODE);
static_assert(int{kMessageRegistered} == NVTX_MESSAGE_TYPE_REGISTERED);
static_assert(int{kPayloadUint64} == NVTX_PAYLOAD_TYPE_UNSIGNED_INT64);
static_assert(int{kPayloadInt64} == NVTX_PAYLOAD_TYPE_INT64);
static_assert(int{kPayloadDouble} == NVTX_PAYLOAD_TYPE_DOUBLE);
static_assert(int{kPayloadUint32} == NVTX_PAYLOAD_TYPE_UNSIGNED_INT32);
static_assert(int{kPayloadInt32} == NVTX_PAYLOAD_TYPE_INT32);
static_assert(int{kPayloadFloat} == NVTX_PAYLOAD_TYPE_FLOAT);
static_assert(int{kPayloadExtended} == NVTX_PAYLOAD_TYPE_EXT);
static_assert(kNoPushPopTracking == NVTX_NO_PUSH_POP_TRACKING);

static_assert(int{kModuleCore} == NVTX_CB_MODULE_CORE);
static_assert(int{kModuleCore2} == NVTX_CB_MODULE_CORE2);
static_assert(int{kMarkEx} == NVTX_CBID_CORE_MarkEx);
static_assert(int{kMarkA} == NVTX_CBID_CORE_MarkA);
static_assert(int{kMarkW} == NVTX_CBID_CORE_MarkW);
static_assert(int{kRangeStartEx} == NVTX_CBID_CORE_RangeStartEx);
static_assert(int{kRangeStartA} == NVTX_CBID_CORE_RangeStartA);
static_assert(int{kRangeStartW} == NVTX_CBID_CORE_RangeStartW);
static_assert(int{kRangeEnd} == NVTX_CBID_CORE_RangeEnd);
static_assert(int{kRangePushEx} == NVTX_CBID_CORE_RangePushEx);
static_assert(int{kRangePushA} == NVTX_CBID_CORE_RangePushA);
static_assert(int{kRangePushW} == NVTX_CBID_CORE_RangePushW);
static_assert(int{kRangePop} == NVTX_CBID_CORE_RangePop);
static_assert(int{kNameCategoryA} == NVTX_CBID_CORE_NameCategoryA);
static_assert(int{kNameCategoryW} == NVTX_CBID_CORE_NameCategoryW);
static_assert(int{kNameOsThreadA} == NVTX_CBID_CORE_NameOsThreadA);
static_assert(int{kNameOsThreadW} == NVTX_CBID_CORE_NameOsThreadW);
static_assert(int{kDomainMarkEx} == NVTX_CBID_CORE2_DomainMarkEx);
static_assert(int{kDomainRangeStartEx} == NVTX_CBID_CORE2_DomainRangeStartEx);
static_assert(int{kDomainRangeEnd} == NVTX_CBID_CORE2_DomainRangeEnd);
static_assert(int{kDomainRangePushEx} == NVTX_CBID_CORE2_DomainRangePushEx);
static_assert(int{kDomainRangePop} == NVTX_CBID_CORE2_DomainRangePop);
static_assert(int{kDomainNameCategoryA} == NVTX_CBID_CORE2_DomainNameCategoryA);
static_assert(int{kDomainNameCategoryW} == NVTX_CBID_CORE2_DomainNameCategoryW);
static_assert(int{kDomainRegisterStringA} == NVTX_CBID_CORE2_DomainRegisterStringA);
static_assert(int{kDomainRegisterStringW} == NVTX_CBID_CORE2_DomainRegisterStringW);
static_assert(int{kDomainCreateA} == NVTX_CBID_CORE2_DomainCreateA);
static_assert(int{kDomainCreateW} == NVTX_CBID_CORE2_DomainCreateW);
static_assert(int{kDomainDestroy} == NVTX_CBID_CORE2_DomainDestroy);

static_assert(int{kExportCallbacks} == NVTX_ETID_CALLBACKS);
static_assert(int{kExportVersion} == NVTX_ETID_VERSIONINFO);
SAME_SIZE(CallbackExports, NvtxExportTableCallbacks);
SAME_PLACE(CallbackExports, module_table, NvtxExportTableCallbacks, GetModuleFunctionTable);
SAME_SIZE(VersionExports, NvtxExportTableVersionInfo);
SAME_PLACE(VersionExports, set_tool_version, NvtxExportTableVersionInfo, SetInjectionNvtxVersion);

static_assert(kPayloadModule == NVTX_EXT_PAYLOAD_MODULEID);
static_assert(kPayloadOldest <= NVTX_EXT_PAYLOAD_COMPATID &&
              NVTX_EXT_PAYLOAD_COMPATID <= kPayloadNewest);
static_assert(int{kSchemaRegister} == NVTX3EXT_CBID_nvtxPayloadSchemaRegister);
static_assert(int{kMarkPayload} == NVTX3EXT_CBID_nvtxMarkPayload);
static_assert(int{kRangePushPayload} == NVTX3EXT_CBID_nvtxRangePushPayload);
static_assert(int{kRangePopPayload} == NVTX3EXT_CBID_nvtxRangePopPayload);
static_assert(int{kRangeStartPayload} == NVTX3EXT_CBID_nvtxRangeStartPayload);
static_assert(int{kRangeEndPayload} == NVTX3EXT_CBID_nvtxRangeEndPayload);
SAME_SIZE(ExtensionSegment, nvtxExtModuleSegment_t);
SAME_PLACE(ExtensionSegment, slots, nvtxExtModuleSegment_t, slotCount);
SAME_PLACE(ExtensionSegment, functions, nvtxExtModuleSegment_t, functionSlots);
SAME_SIZE(ExtensionModule, nvtxExtModuleInfo_t);
SAME_PLACE(ExtensionModule, module, nvtxExtModuleInfo_t, moduleId);
SAME_PLACE(ExtensionModule, compatibility, nvtxExtModuleInfo_t, compatId);
SAME_PLACE(ExtensionModule, segments_count, nvtxExtModuleInfo_t, segmentsCount);
SAME_PLACE(ExtensionModule, segments, nvtxExtModuleInfo_t, segments);

SAME_SIZE(PayloadData, nvtxPayloadData_t);
SAME_PLACE(PayloadData, schema, nvtxPayloadData_t, schemaId);
SAME_PLACE(PayloadData, size, nvtxPayloadData_t, size);
SAME_PLACE(PayloadData, payload, nvtxPayloadData_t, payload);
SAME_SIZE(SchemaEntry, nvtxPayloadSchemaEntry_t);
SAME_PLACE(SchemaEntry, flags, nvtxPayloadSchemaEntry_t, flags);
SAME_PLACE(SchemaEntry, type, nvtxPayloadSchemaEntry_t, type);
SAME_PLACE(SchemaEntry, name, nvtxPayloadSchemaEntry_t, name);
SAME_PLACE(SchemaEntry, offset, nvtxPayloadSchemaEntry_t, offset);
SAME_PLACE(SchemaAttributes, fields, nvtxPayloadSchemaAttr_t, fieldMask);
SAME_PLACE(SchemaAttributes, entries, nvtxPayloadSchemaAttr_t, entries);
SAME_PLACE(SchemaAttributes, count, nvtxPayloadSchemaAttr_t, numEntries);
SAME_PLACE(SchemaAttributes, id, nvtxPayloadSchemaAttr_t, schemaId);

static_assert(kStaticSchemas == NVTX_PAYLOAD_SCHEMA_ID_STATIC_START);
static_assert(kDynamicSchemas == NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START);
static_assert(kSchemaEntries == NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES);
static_assert(kSchemaCount == NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES);
static_assert(kSchemaId == NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID);
static_assert(kEntryChar == NVTX_PAYLOAD_ENTRY_TYPE_CHAR);
static_assert(kEntryInt == NVTX_PAYLOAD_ENTRY_TYPE_INT);
static_assert(kEntryUint == NVTX_PAYLOAD_ENTRY_TYPE_UINT);
static_assert(kEntryLong == NVTX_PAYLOAD_ENTRY_TYPE_LONG);
static_assert(kEntryUlong == NVTX_PAYLOAD_ENTRY_TYPE_ULONG);
static_assert(kEntryLongLong == NVTX_PAYLOAD_ENTRY_TYPE_LONGLONG);
static_assert(kEntryUlongLong == NVTX_PAYLOAD_ENTRY_TYPE_ULONGLONG);
static_assert(kEntryInt32 == NVTX_PAYLOAD_ENTRY_TYPE_INT32);
static_assert(kEntryUint32 == NVTX_PAYLOAD_ENTRY_TYPE_UINT32);
static_assert(kEntryInt64 == NVTX_PAYLOAD_ENTRY_TYPE_INT64);
static_assert(kEntryUint64 == NVTX_PAYLOAD_ENTRY_TYPE_UINT64);
static_assert(kEntrySize == NVTX_PAYLOAD_ENTRY_TYPE_SIZE);
static_assert(kEntryCString == NVTX_PAYLOAD_ENTRY_TYPE_CSTRING);
static_assert(kEntryCStringUtf8 == NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF8);
static_assert(kEntryRegistered == NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE);
static_assert(kEntryPointer == NVTX_PAYLOAD_ENTRY_FLAG_POINTER);
static_assert(kEntryMessage == NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE);
constexpr std::uint64_t kAllNotScalar =
    NVTX_PAYLOAD_ENTRY_FLAG_POINTER | NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_BASE |
    NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_HERE | NVTX_PAYLOAD_ENTRY_FLAG_IS_ARRAY;
static_assert((kEntryNotScalar & kAllNotScalar) == kAllNotScalar);

}  // namespace rehearse::capture::nvtx
