// Boards and their power in a capture.
#pragma once

#include <map>
#include <string>

#include "profiler/capture/blocks.h"
#include "profiler/ingest/capture_lookup.h"
#include "profiler/trace/recorder.h"

namespace rehearse::ingest {

class CapturePower {
 public:
  /// REQUIRES: the recorder outlives it.
  CapturePower(trace::Recorder& recorder, CaptureLookup lookup)
      : recorder_(recorder), lookup_(std::move(lookup)) {}

  /// Reads the records of a block. False if it does not read their table. It also sees the device
  /// records, but leaves them to other readers.
  bool read(const capture::RecordsBlock& block);

  /// Links each board to its device in the process.
  void finish();

 private:
  struct Device {
    std::uint32_t ordinal;
    std::optional<std::uint32_t> multiprocessors;
  };

  void read(const capture::BoardRecord& record);
  void read(const capture::PowerRecord& record);
  void note(const capture::DeviceRecord& record);
  std::string text(std::uint64_t number);

  trace::Recorder& recorder_;
  CaptureLookup lookup_;
  std::map<std::string, std::uint32_t> boards_;  ///< index of the first with this UUID
  std::map<std::string, Device> devices_;        ///< by UUID
};

}  // namespace rehearse::ingest
