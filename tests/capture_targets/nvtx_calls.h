// Each call of NVTX, as the ways of target.cc make them: names, payloads, domains and what NCCL does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/capture_targets/nvtx_api.h"

namespace {

nvtxEventAttributes_t event(const char* name) {
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name;
  return attributes;
}

void sleep_ms(long ms) {
  const timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, nullptr);
}

void ranges(long n, const char* name = "range") {
  for (long i = 0; i < n; ++i) {
    nvtxRangePushA(name);
    nvtxRangePop();
  }
}

void expect(bool what, const char* text) {
  if (what) return;
  fprintf(stderr, "target: expected %s\n", text);
  exit(90);
}

/// One thread, every way to name, nest and mark. Levels are those of the interface.
int basics() {
  nvtxNameOsThreadA(static_cast<std::uint32_t>(syscall(SYS_gettid)), "the main one");
  expect(nvtxRangePushA("outer") == 0, "level 0");
  expect(nvtxRangePushW(L"w\u00efde \u20ac \U0001F600") == 1, "level 1");
  nvtxMarkA("mark a");
  nvtxMarkW(L"mark w");
  expect(nvtxRangePop() == 1, "level 1 back");

  nvtxEventAttributes_t inner = event("inner");
  inner.category = 7;
  inner.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  inner.payload.ullValue = UINT64_MAX;
  nvtxRangePushEx(&inner);
  expect(nvtxRangePop() == 1, "level 1 again");
  expect(nvtxRangePop() == 0, "level 0 back");
  expect(nvtxRangePop() < 0, "an error for a stray pop");

  nvtxNameCategoryA(7, "seven");
  nvtxRangePushA(nullptr);
  nvtxRangePop();
  nvtxRangePushEx(nullptr);
  nvtxRangePop();
  nvtxMarkEx(nullptr);

  nvtxEventAttributes_t invalid = event("bad \xff\xfe bytes");
  nvtxMarkEx(&invalid);
  const std::string longest(5000, 'x');
  nvtxMarkA(longest.c_str());
  return 0;
}

int payloads() {
  nvtxEventAttributes_t attributes = event("u64");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  attributes.payload.ullValue = 1234567890123456789;
  nvtxMarkEx(&attributes);
  attributes = event("i64");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  attributes.payload.llValue = 42;
  nvtxMarkEx(&attributes);
  attributes = event("negative i64");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  attributes.payload.llValue = -1;
  nvtxMarkEx(&attributes);
  attributes = event("double");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  attributes.payload.dValue = 65536;
  nvtxMarkEx(&attributes);
  attributes = event("fraction");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  attributes.payload.dValue = 0.5;
  nvtxMarkEx(&attributes);
  attributes = event("u32");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
  attributes.payload.ullValue = UINT64_MAX;  // the upper half is not part of it
  attributes.payload.uiValue = 4000000000;
  nvtxMarkEx(&attributes);
  attributes = event("i32");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  attributes.payload.iValue = 7;
  nvtxMarkEx(&attributes);
  attributes = event("negative i32");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  attributes.payload.iValue = -7;
  nvtxMarkEx(&attributes);
  attributes = event("float");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
  attributes.payload.fValue = 3;
  nvtxMarkEx(&attributes);
  attributes = event("none");
  attributes.payload.ullValue = 99;
  nvtxMarkEx(&attributes);
  return 0;
}

/// Domains have stacks of their own on each thread; registered strings; ranges across threads.
int domains() {
  const nvtxDomainHandle_t a = nvtxDomainCreateA("domain a");
  const nvtxDomainHandle_t b = nvtxDomainCreateW(L"domain b");
  const nvtxStringHandle_t text = nvtxDomainRegisterStringA(a, "registered");
  const nvtxStringHandle_t wide = nvtxDomainRegisterStringW(b, L"registered w\u00efde");
  nvtxDomainNameCategoryA(a, 3, "three of a");

  nvtxEventAttributes_t in_a = event("");
  in_a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  in_a.message.registered = text;
  nvtxEventAttributes_t in_b = event("");
  in_b.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  in_b.message.registered = wide;

  expect(nvtxDomainRangePushEx(a, &in_a) == 0, "level 0 in a");
  expect(nvtxDomainRangePushEx(b, &in_b) == 0, "level 0 in b");
  expect(nvtxRangePushA("default domain") == 0, "level 0 in the default domain");
  expect(nvtxDomainRangePop(a) == 0, "the range of a");  // out of the order of the pushes
  expect(nvtxDomainRangePop(b) == 0, "the range of b");
  expect(nvtxRangePop() == 0, "the range of the default domain");
  nvtxDomainMarkEx(b, &in_b);

  nvtxEventAttributes_t bogus = event("");
  bogus.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  bogus.message.registered = reinterpret_cast<nvtxStringHandle_t>(&bogus);
  nvtxDomainMarkEx(reinterpret_cast<nvtxDomainHandle_t>(&bogus), &bogus);

  const nvtxRangeId_t plain = nvtxRangeStartA("started here");
  nvtxEventAttributes_t started = event("started in a");
  const nvtxRangeId_t in_domain = nvtxDomainRangeStartEx(a, &started);
  nvtxRangeStartA("never ended");
  std::thread([&] {
    nvtxDomainRangeEnd(a, in_domain);
    nvtxRangeEnd(plain);
    nvtxRangeEnd(12345);
  }).join();
  nvtxDomainDestroy(b);
  return 0;
}

/// What NCCL does, with a schema that is registered and one that is not.
int communication() {
  const nvtxDomainHandle_t nccl = nvtxDomainCreateA("NCCL");
  struct Init {
    std::uint64_t group;
    int ranks;
    int rank;
    int device;
  };
  static const nvtxPayloadSchemaEntry_t init_entries[] = {
      {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", nullptr, 0, 0, nullptr, nullptr},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "No. of ranks", nullptr, 0, 8, nullptr, nullptr},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "Rank", nullptr, 0, 0, nullptr, nullptr},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "CUDA device", nullptr, 0, 0, nullptr, nullptr},
  };
  nvtxPayloadSchemaAttr_t schema = {};
  schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  schema.entries = init_entries;
  schema.numEntries = 4;
  schema.schemaId = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 0;
  expect(nvtxPayloadSchemaRegister(nccl, &schema) == schema.schemaId, "the program's schema id");

  nvtxEventAttributes_t init = event("ncclCommInitRank");
  nvtxDomainRangePushEx(nccl, &init);
  const Init made = {0xABCDEF0123456789, 8, 3, 0};
  const nvtxPayloadData_t init_data = {schema.schemaId, sizeof made, &made};
  expect(nvtxRangePopPayload(nccl, &init_data, 1) == 0, "the level of the range");

  struct Call {
    std::uint64_t group;
    std::uint64_t bytes;
    int operand;
  };
  const auto call = [&](const char* name, std::uint64_t id, const Call& what, std::size_t size) {
    const nvtxPayloadData_t data = {NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + id, size, &what};
    nvtxEventAttributes_t attributes = event(name);
    attributes.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    attributes.reserved0 = 1;
    attributes.payload.ullValue = reinterpret_cast<std::uintptr_t>(&data);
    nvtxDomainRangePushEx(nccl, &attributes);
    nvtxDomainRangePop(nccl);
  };
  // Known layouts of schemas that nobody registered.
  call("ncclAllReduce", 5, {made.group, 4096, 0}, sizeof(Call));
  call("ncclReduceScatter", 7, {made.group, 512, 0}, sizeof(Call));
  call("ncclAllGather", 4, {made.group, 1024, 0}, 16);
  call("ncclSend", 9, {made.group, 77, 2}, sizeof(Call));
  call("ncclRecv", 10, {made.group, 78, 2}, sizeof(Call));
  call("ncclAllReduce", 5, {0x1111, 100, 0}, sizeof(Call));  // a communicator never seen
  call("ncclAllReduce", 5, {made.group, 4096, 0}, 16);       // an older release: bytes come first
  call("ncclBroadcast", 99, {made.group, 4096, 0}, sizeof(Call));  // a call of the future

  // A schema without offsets and id, whose payload names the event.
  const nvtxDomainHandle_t own = nvtxDomainCreateA("own");
  struct Named {
    const char* message;
    int rank;
  };
  static const nvtxPayloadSchemaEntry_t named_entries[] = {
      {NVTX_PAYLOAD_ENTRY_FLAG_POINTER | NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE,
       NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "message", nullptr, 0, 0, nullptr, nullptr},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "Peer rank", nullptr, 0, 0, nullptr, nullptr},
  };
  nvtxPayloadSchemaAttr_t named_schema = {};
  named_schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                           NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                           NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES;
  named_schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  named_schema.entries = named_entries;
  named_schema.numEntries = 2;
  const std::uint64_t id = nvtxPayloadSchemaRegister(own, &named_schema);
  expect(id >= std::uint64_t{1} << 32, "an id of the tool");
  const Named named = {"named by its payload", 4};
  const nvtxPayloadData_t data = {id, sizeof named, &named};
  nvtxRangePushPayload(own, &data, 1);
  nvtxRangePopPayload(own, nullptr, 0);
  return 0;
}

}  // namespace
