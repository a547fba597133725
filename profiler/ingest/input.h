#pragma once
#include <filesystem>
#include <span>
#include "profiler/trace/trace.h"
#include "sim/base/progress.h"
#include "sim/base/result.h"
namespace rehearse::ingest {
enum class InputKind { kStore, kCapture, kKineto, kExecutionTrace, kChakra, kNsys };
Result<InputKind> detect_input(const std::filesystem::path& path);
struct ReadOptions { bool strict = false; Progress progress = {}; };
Result<trace::Trace> read_inputs(std::span<const std::filesystem::path> paths, const ReadOptions& options);
struct ImportSummary { std::size_t ranks=0, devices=0; std::uint64_t host_ops=0, gpu_ops=0, steps=0; trace::Problems problems; };
Result<ImportSummary> import_inputs(std::span<const std::filesystem::path> paths, const std::filesystem::path& store, const ReadOptions& options);
}
