// Traces of requests to an inference server (docs/formats/job.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "sim/base/result.h"
#include "sim/serving/request.h"

namespace rehearse::cli {

struct RequestTrace {
  std::vector<serving::Request> requests;
  std::int64_t prefix_tokens = 512;  ///< per name of a prefix, as in Mooncake's traces
};

/// A file with a request per line, in order of arrival; may be gzip. CSV has the columns arrival_s, input_tokens
/// and output_tokens. JSONL has timestamp in ms, input_length, output_length and, optionally,
/// hash_ids: the names of the prompt's blocks of 512 tokens. Fails with the line of the first
/// request that is none.
Result<RequestTrace> load_requests(const std::filesystem::path& path);

}  // namespace rehearse::cli
