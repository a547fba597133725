// Fitting a calibration to measured rows.
//
// NCCL's choice determines in advance which piece of the model a row belongs to, so each piece is
// fitted alone: a linear system in non-negative latencies and times per byte,
// with relative errors and a robust loss. Nonlinear constants (the exponent q, knees) are searched
// on a fixed grid. There is no randomness: equal rows in any order give equal constants to
// rounding.
#pragma once

#include <span>
#include <string>

#include "models/comm/calibration.h"

namespace rehearse::comm {

struct MeasuredRow {
  CollectiveKind kind;
  std::uint32_t ranks;
  Bytes size;  ///< as nccl-tests: of the buffer of a rank; all ranks' for gather and scatter
  Seconds time;
};

/// Known properties of the device besides the rows.
struct FitRequest {
  std::string device;
  Fabric fabric = Fabric::kNvswitch;
  Generation generation = Generation::kAmpere;
  std::uint32_t links = 0;
  std::string source = {}, rows_used = {}, nccl_version = {}, date = {};
};

/// The constants, with intervals from rows left out: the rows are dealt into four parts by size,
/// each is predicted from the other three. Fails where the rows cannot tell the constants apart;
/// the message says which rows are missing.
Result<Calibration> fit(const FitRequest& request, std::span<const MeasuredRow> rows);

}  // namespace rehearse::comm
