// The trace store: a recording as one SQLite file (`.rehearse`), to keep, to query by hand, and to
// read back. docs/formats/store.md describes the schema.
#pragma once

#include <filesystem>
#include <memory>

#include "profiler/trace/recorder.h"
#include "profiler/trace/trace.h"
#include "sim/base/result.h"

namespace rehearse::trace {

inline constexpr int kStoreVersion = 3;
/// Stores of this version have no checksum. They are read, with a note among their problems.
inline constexpr int kUncheckedVersion = 2;

/// Writes a store in one transaction under a temporary name: a killed import leaves the old file.
class StoreWriter {
 public:
  /// Fails if the file cannot be written.
  static Result<StoreWriter> create(const std::filesystem::path& path);
  StoreWriter(StoreWriter&&) noexcept;
  ~StoreWriter();

  /// The sink for the rows of the rank with this index in Trace::ranks. Use one rank at a time.
  RowSink& rows(std::size_t rank);

  /// Writes everything of `trace` except its rows, and moves the file to its final path. Fails,
  /// leaving the old file, if any write failed (a full disk).
  Status finish(const Trace& trace);

 private:
  struct Database;
  explicit StoreWriter(std::unique_ptr<Database> database);
  std::unique_ptr<Database> database_;
};

/// Whether the file is a store of any version, by its content.
bool is_store(const std::filesystem::path& path);

/// Reads a whole store. Fails on an unknown version, on a wrong checksum and on a damaged file.
Result<Trace> read_store(const std::filesystem::path& path);

}  // namespace rehearse::trace
