#include <algorithm>
#include <map>

#include "profiler/capture/blocks.h"
#include "profiler/ingest/capture.h"
#include "profiler/ingest/session_file.h"

namespace rehearse::ingest {
namespace {

namespace fs = std::filesystem;
using capture::BlockReader;
using trace::Recorder;

/// A file of a capture folder, what its first block says, and how its clock ran.
struct CaptureFile {
  fs::path path;
  double bytes;
  bool is_capture;
  std::optional<capture::ProcessFacts> facts = {};
  bool lost_rank = false;  ///< the number is another process's, though the file says so
  std::vector<capture::ClockPair> clocks = {};
};

/// NAME.cap, or NAME.cap.gz, as recordings are kept.
bool is_capture_name(const fs::path& path) {
  return path.extension() == capture::kCaptureSuffix ||
         (path.extension() == ".gz" && path.stem().extension() == capture::kCaptureSuffix);
}

std::vector<fs::path> capture_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (is_capture_name(entry.path()) && entry.is_regular_file(ignored))
      files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

Result<CaptureFile> look_at(const fs::path& path) {
  const std::unique_ptr<ByteSource> source = TRY(open_bytes(path));
  std::error_code ignored;
  CaptureFile file{.path = path,
                   .bytes = static_cast<double>(fs::file_size(path, ignored)),
                   .is_capture = false,
                   .lost_rank = false};
  BlockReader blocks([&](std::span<char> into) { return source->read(into); });
  const BlockReader::Begin begin = blocks.begin();
  file.is_capture = begin != BlockReader::Begin::kOther;
  if (begin != BlockReader::Begin::kCapture) return file;
  while (const auto block = blocks.next()) {
    if (block->type == capture::BlockType::kProcess && !file.facts) {
      file.facts = capture::decode_process(block->payload);
      if (file.facts) file.clocks.push_back({file.facts->realtime_ns, file.facts->monotonic_ns});
    } else if (block->type == capture::BlockType::kClock) {
      if (const auto clock = capture::decode_clock(block->payload)) file.clocks.push_back(*clock);
    }
  }
  return file;
}

/// Decides which of several processes with one rank number owns it: child processes inherit the
/// launcher's variables.
void settle_ranks(std::vector<CaptureFile>& files) {
  for (CaptureFile& file : files) file.lost_rank = file.facts && file.facts->rank;
  std::map<std::uint32_t, std::vector<capture::ProcessFacts*>> claims;
  for (CaptureFile& file : files)
    if (file.facts && file.facts->rank && file.facts->forked_from == 0)
      claims[*file.facts->rank].push_back(&*file.facts);
  for (auto& [rank, claimants] : claims) {
    const auto is_child = [&claims = claimants](const capture::ProcessFacts* process) {
      return std::ranges::any_of(claims, [&](const capture::ProcessFacts* other) {
        return other != process && other->host == process->host &&
               other->process == process->parent;
      });
    };
    // The first that no other started; of one process that replaced its program, the last program.
    const capture::ProcessFacts* owner = nullptr;
    for (const capture::ProcessFacts* process : claimants) {
      if (is_child(process)) continue;
      const bool same = owner && owner->host == process->host && owner->process == process->process;
      if (!owner || (same ? owner->realtime_ns < process->realtime_ns
                          : process->realtime_ns < owner->realtime_ns))
        owner = process;
    }
    for (capture::ProcessFacts* process : claimants)
      if (process != owner) process->rank = process->world_size = std::nullopt;
  }
  for (CaptureFile& file : files) file.lost_rank = file.lost_rank && !file.facts->rank;
}

}  // namespace

bool is_capture_folder(const fs::path& path) { return !capture_files(path).empty(); }

Status read_capture_folder(const fs::path& folder, const NewRank& new_rank,
                           const Progress& progress) {
  std::vector<CaptureFile> files;
  for (const fs::path& path : capture_files(folder)) files.push_back(TRY(look_at(path)));
  if (std::ranges::none_of(files, [](const CaptureFile& file) { return file.is_capture; }))
    return fail_in(folder, "contains no capture", "files that the profiler wrote (HOST-PID.cap)");
  const auto facts = TRY(session_facts(folder));
  settle_ranks(files);
  const auto order = [](const CaptureFile& file) {
    return file.facts && file.facts->rank ? std::uint64_t{*file.facts->rank} : UINT64_MAX;
  };
  std::ranges::stable_sort(
      files, [&](const CaptureFile& a, const CaptureFile& b) { return order(a) < order(b); });

  std::map<std::string, std::vector<capture::ClockPair>> pairs;
  for (const CaptureFile& file : files)
    if (file.facts) {
      std::vector<capture::ClockPair>& of_host = pairs[file.facts->host];
      of_host.insert(of_host.end(), file.clocks.begin(), file.clocks.end());
    }
  std::map<std::string, MachineClock> machines;
  for (auto& [host, of_host] : pairs) machines.emplace(host, std::move(of_host));

  double all = 0, done = 0;
  for (const CaptureFile& file : files) all += file.bytes;
  for (const CaptureFile& file : files) {
    const std::unique_ptr<ByteSource> source = TRY(open_bytes(file.path));
    Recorder& recorder = new_rank(file.path.string());
    const Progress share = [&](double part) {
      return progress((done + part * file.bytes) / std::max(all, 1.0));
    };
    CaptureClock clock;
    if (file.facts) clock = CaptureClock(&machines.at(file.facts->host), file.clocks);
    TRY(read_capture(*source, recorder, progress ? share : Progress(), std::move(clock)));
    for (const auto& [key, value] : facts) recorder.info().facts.push_back({key, value});
    if (file.lost_rank) {
      recorder.info().rank = std::nullopt;
      recorder.info().world_size = std::nullopt;
    }
    done += file.bytes;
  }
  return {};
}

}  // namespace rehearse::ingest
