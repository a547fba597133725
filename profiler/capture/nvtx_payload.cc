#include "profiler/capture/nvtx_payload.h"

#include <atomic>
#include <climits>

#include "profiler/capture/texts.h"

namespace rehearse::capture {
namespace {

/// A number in a payload; `bytes` is 0 where the payload has none.
struct Field {
  std::uint16_t offset = 0;
  std::uint8_t bytes = 0;
};

enum class Message : std::uint8_t { kNone, kRegistered, kPointer };

/// Where a payload holds what.
struct Layout {
  Field group = {};
  Field bytes = {};
  Field peer = {};
  Field reduction = {};
  Field ranks = {};
  Field rank = {};
  std::uint16_t message_offset = 0;
  Message message = Message::kNone;
  std::size_t size = 0;  ///< that the fields reach
};

struct Schema {
  Schema* next;
  std::uint32_t domain;
  std::uint64_t id;
  Layout layout;
};

constexpr std::size_t kMaxEntries = 256;
constexpr std::size_t kMaxPayloads = 16;

std::atomic<Schema*> schemas;
std::atomic<std::uint64_t> last_dynamic{nvtx::kDynamicSchemas};

/// Bytes of an entry type that is a number or a pointer; 0 for any other.
std::size_t entry_bytes(const nvtx::SchemaEntry& entry) {
  if (entry.flags & nvtx::kEntryPointer) return sizeof(void*);
  switch (entry.type) {
    case nvtx::kEntryChar: return 1;
    case nvtx::kEntryInt:
    case nvtx::kEntryUint:
    case nvtx::kEntryInt32:
    case nvtx::kEntryUint32: return 4;
    case nvtx::kEntryLong:
    case nvtx::kEntryUlong:
    case nvtx::kEntryLongLong:
    case nvtx::kEntryUlongLong:
    case nvtx::kEntryInt64:
    case nvtx::kEntryUint64:
    case nvtx::kEntrySize:
    case nvtx::kEntryRegistered: return 8;
    default:
      // An enumeration that the program registered: an int, as C has it.
      return entry.type >= nvtx::kStaticSchemas ? 4 : 0;
  }
}

struct Label {
  std::string_view name;
  Field Layout::*field;
};

// NCCL's names of its entries.
constexpr Label kLabels[] = {
    {"NCCL communicator ID", &Layout::group},
    {"Message size [bytes]", &Layout::bytes},
    {"Root", &Layout::peer},
    {"Peer rank", &Layout::peer},
    {"Reduction operation", &Layout::reduction},
    {"No. of ranks", &Layout::ranks},
    {"Rank", &Layout::rank},
};

Layout layout_of(const nvtx::SchemaEntry* entries, std::size_t count) {
  Layout layout;
  std::size_t offset = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const nvtx::SchemaEntry& entry = entries[i];
    const std::size_t bytes = entry_bytes(entry);
    if (bytes == 0) break;  // where the later ones lie is unknown
    offset = entry.offset != 0 ? entry.offset : (offset + bytes - 1) / bytes * bytes;
    if (offset > UINT16_MAX) break;
    const auto at = static_cast<std::uint16_t>(offset);
    offset += bytes;
    bool used = false;
    if (entry.flags & nvtx::kEntryMessage) {
      layout.message_offset = at;
      layout.message =
          entry.type == nvtx::kEntryRegistered ? Message::kRegistered
          : (entry.flags & nvtx::kEntryPointer) &&
                  (entry.type == nvtx::kEntryCString || entry.type == nvtx::kEntryCStringUtf8)
              ? Message::kPointer
              : Message::kNone;
      used = layout.message != Message::kNone;
    } else if (entry.name && !(entry.flags & nvtx::kEntryNotScalar)) {
      for (const Label& label : kLabels) {
        if (clip(entry.name) != label.name) continue;
        layout.*label.field = {at, static_cast<std::uint8_t>(bytes)};
        used = true;
      }
    }
    if (used && offset > layout.size) layout.size = offset;
  }
  return layout;
}

const Layout* find_layout(std::uint32_t domain, std::uint64_t id) {
  for (const Schema* schema = schemas.load(std::memory_order_acquire); schema;
       schema = schema->next)
    if (schema->id == id && schema->domain == domain) return &schema->layout;
  return nullptr;
}

/// NCCL's layouts by the number of the call, counted from kStaticSchemas, for a schema that was
/// registered before this library was there. Older releases, whose payloads are shorter, carry no
/// communicator.
const Layout* known_layout(std::uint64_t id, std::size_t size) {
  static constexpr Field kGroup{0, 8}, kBytes{8, 8}, kInt{16, 4}, kInt2{20, 4};
  static constexpr Layout kPlain{.group = kGroup, .bytes = kBytes, .size = 16};
  static constexpr Layout kReduce{.group = kGroup, .bytes = kBytes, .reduction = kInt, .size = 24};
  static constexpr Layout kPeer{.group = kGroup, .bytes = kBytes, .peer = kInt, .size = 24};
  static constexpr Layout kRooted{
      .group = kGroup, .bytes = kBytes, .peer = kInt, .reduction = kInt2, .size = 24};
  const Layout* layout = nullptr;
  switch (id - nvtx::kStaticSchemas) {
    case 4: layout = &kPlain; break;   // AllGather
    case 5: layout = &kReduce; break;  // AllReduce
    case 6: layout = &kPeer; break;    // Broadcast
    case 7: layout = &kReduce; break;  // ReduceScatter
    case 8: layout = &kRooted; break;  // Reduce
    case 9: layout = &kPeer; break;    // Send
    case 10: layout = &kPeer; break;   // Recv
    case 16: layout = &kPlain; break;  // AlltoAll
    case 17: layout = &kPeer; break;   // Gather
    case 18: layout = &kPeer; break;   // Scatter
    default: return nullptr;
  }
  return size == layout->size ? layout : nullptr;
}

std::uint64_t read_field(const nvtx::PayloadData& data, Field field) {
  const char* at = static_cast<const char*>(data.payload) + field.offset;
  std::uint64_t value = 0;
  std::memcpy(&value, at, field.bytes);
  return value;
}

/// A rank or an operation as the file has it: plus one, 0 for none. They are C ints; a negative one
/// means none.
std::uint32_t plus_one(std::uint64_t value) {
  return value < INT_MAX ? static_cast<std::uint32_t>(value) + 1 : 0;
}

/// The payload's layout; null when it is unknown or the payload is too small for it.
const Layout* layout_for(const nvtx::PayloadData& data, std::uint32_t domain,
                         std::uint32_t nccl_domain) {
  if (!data.payload) return nullptr;
  const Layout* layout = find_layout(domain, data.schema);
  if (!layout && domain == nccl_domain && nccl_domain != 0)
    layout = known_layout(data.schema, data.size);
  return layout && layout->size <= data.size ? layout : nullptr;
}

}  // namespace

std::uint64_t register_schema(std::uint32_t domain, const nvtx::SchemaAttributes* attributes) {
  if (!attributes || !(attributes->fields & nvtx::kSchemaEntries) || !attributes->entries) return 0;
  const std::uint64_t id = attributes->fields & nvtx::kSchemaId
                               ? attributes->id
                               : last_dynamic.fetch_add(1, std::memory_order_relaxed);
  // Each library in the process registers its own.
  if (find_layout(domain, id)) return id;
  auto* schema = static_cast<Schema*>(lasting_memory(sizeof(Schema)));
  if (!schema) return id;
  schema->domain = domain;
  schema->id = id;
  schema->layout = layout_of(attributes->entries,
                             attributes->count < kMaxEntries ? attributes->count : kMaxEntries);
  schema->next = schemas.load(std::memory_order_relaxed);
  while (!schemas.compare_exchange_weak(schema->next, schema, std::memory_order_acq_rel)) {
  }
  return id;
}

Communicator read_payloads(const nvtx::PayloadData* payloads, std::size_t count,
                           std::uint32_t domain, std::uint32_t nccl_domain, Row& row) {
  Communicator made;
  for (std::size_t i = 0; payloads && i < count && i < kMaxPayloads; ++i) {
    const nvtx::PayloadData& data = payloads[i];
    const Layout* layout = layout_for(data, domain, nccl_domain);
    if (!layout) continue;
    if (layout->group.bytes) row.group = read_field(data, layout->group);
    if (layout->bytes.bytes) {
      row.payload = read_field(data, layout->bytes);
      row.payload_kind = PayloadKind::kMessageBytes;
    }
    if (layout->peer.bytes) row.peer = plus_one(read_field(data, layout->peer));
    if (layout->reduction.bytes) row.reduction = plus_one(read_field(data, layout->reduction));
    if (layout->ranks.bytes && layout->rank.bytes && layout->group.bytes) {
      made.group = row.group;
      made.ranks = read_field(data, layout->ranks);
      made.rank = read_field(data, layout->rank);
    }
  }
  return made;
}

std::string_view payload_message(const nvtx::PayloadData* payloads, std::size_t count,
                                 std::uint32_t domain) {
  for (std::size_t i = 0; payloads && i < count && i < kMaxPayloads; ++i) {
    const Layout* layout = layout_for(payloads[i], domain, 0);
    if (!layout || layout->message == Message::kNone) continue;
    const void* message;
    std::memcpy(&message, static_cast<const char*>(payloads[i].payload) + layout->message_offset,
                sizeof message);
    if (layout->message == Message::kPointer) return clip(static_cast<const char*>(message));
    const Text* text = as_text(message);
    return text ? text->view() : std::string_view();
  }
  return {};
}

}  // namespace rehearse::capture
