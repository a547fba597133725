// Reads facts of communication calls from NVTX's extended payloads, as NCCL writes
// them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/capture/format.h"
#include "profiler/capture/nvtx_abi.h"

namespace rehearse::capture {

/// Stores the offsets of a schema's entries, so that its payloads can be read.
/// Returns its id: the program's, or a new one. `domain` is the number of the domain's name.
std::uint64_t register_schema(std::uint32_t domain, const nvtx::SchemaAttributes* attributes);

/// The rank's view of a communicator, given when it is made.
struct Communicator {
  std::uint64_t group = 0;
  std::uint64_t ranks = 0;  ///< 0: the payload holds none
  std::uint64_t rank = 0;
};

/// Reads `count` payloads into `row`, by their registered schema, or by NCCL's known layout in the
/// domain whose number is `nccl_domain` (0: there is no such domain yet). Absent fields keep their
/// value. The memory of the payloads is used only during the call.
Communicator read_payloads(const nvtx::PayloadData* payloads, std::size_t count,
                           std::uint32_t domain, std::uint32_t nccl_domain, Row& row);

/// The text that a payload carries as the message of its event; empty if it has none.
std::string_view payload_message(const nvtx::PayloadData* payloads, std::size_t count,
                                 std::uint32_t domain);

}  // namespace rehearse::capture
