// Traces of requests to an inference server (docs/formats/job.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "sim/base/result.h"
#include "sim/serving/request.h"

namespace rehearse::cli {

struct RequestTrace {
  /// The turns of a session are one after another.
  std::vector<serving::Request> requests;
  /// Per name of a prefix, as in Mooncake's traces; nothing where only the sessions tell what prompts share.
  std::optional<std::int64_t> prefix_tokens = 512;
};

/// A file with a request per line, in order of arrival; may be gzip. CSV has the columns arrival_s, input_tokens
/// and output_tokens, and optionally think_s, deadline_s, priority and session. JSONL has timestamp,
/// input_length, output_length and, optionally, delay, deadline (times in ms), priority, session_id and
/// hash_ids: the names of the prompt's blocks of 512 tokens. Later lines of a session are its turns. Fails with
/// the line of the first request that is none.
Result<RequestTrace> load_requests(const std::filesystem::path& path);

}  // namespace rehearse::cli
