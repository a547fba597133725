// The reader of capture files, on any bytes. The first byte of an input says whether the rest is
// read as it is, or with its header and checksums put right, so that the blocks' contents are
// reached.
#include <cstdint>
#include <cstring>
#include <string>

#include "profiler/capture/format.h"
#include "profiler/ingest/capture.h"
#include "profiler/trace/recorder.h"

namespace {

using namespace rehearse;

void put_right(std::string& file) {
  using namespace capture;
  FileHeader header{.magic = {}, .version = kFormatVersion, .reserved = 0};
  std::memcpy(header.magic, kMagic, sizeof header.magic);
  if (file.size() < sizeof header) return;
  std::memcpy(file.data(), &header, sizeof header);
  for (std::size_t at = sizeof header; at + sizeof(BlockHeader) <= file.size();) {
    BlockHeader block;
    std::memcpy(&block, file.data() + at, sizeof block);
    const char* payload = file.data() + at + sizeof block;
    const std::size_t left = file.size() - at - sizeof block;
    if (block.bytes > left) block.bytes = static_cast<std::uint32_t>(left);
    block.crc = block_crc(static_cast<BlockType>(block.type), payload, block.bytes);
    std::memcpy(file.data() + at, &block, sizeof block);
    at += sizeof block + block.bytes;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string file(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] & 1) put_right(file);
  trace::Trace trace;
  trace::Rank& rank = trace.ranks.emplace_back();
  rank.info.source = "fuzz.cap";
  trace::RankRows rows(rank);
  trace::Recorder recorder(trace.names, trace.problems, rank, rows);
  const auto source = ingest::bytes_in_memory(file);
  static_cast<void>(ingest::read_capture(*source, recorder, {}));
  for (const trace::HostOp& op : rank.host_ops)
    if (op.duration.count() < 0 || op.thread.index() >= rank.threads.size() ||
        op.name.index() >= trace.names.size())
      __builtin_trap();
  return 0;
}
