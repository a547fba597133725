// The parts of a fitted calibration (fit.h), each from its own rows.
#pragma once

#include <span>
#include <vector>

#include "models/comm/fit.h"

namespace rehearse::comm::pieces {

using Rows = std::vector<MeasuredRow>;

/// Relative errors below this are noise of the measurement (duplicates differ by 1 to 3 %).
inline constexpr double kNoise = 0.02;

/// Bytes on the wire of each rank.
double wire(const MeasuredRow& row);
/// Infinite where no time per byte was found.
ByteRate rate_of(double seconds_per_byte);
/// The sizes that occur, ascending.
std::vector<double> sizes_of(std::span<const MeasuredRow> rows);

LowLatency fit_ll(std::span<const MeasuredRow> rows);
/// LL128 holds over few sizes, or none. From few rows, only the step is fitted: the call is that of
/// Simple, and the wire carries 120 of 128 bytes. Without any rows, a step costs about twice that
/// of LL.
LowLatency fit_ll128(std::span<const MeasuredRow> rows, const LowLatency& ll, const Simple& simple);
/// The gain of all_reduce and the exponent are 1 unless asked for.
Simple fit_simple(std::span<const MeasuredRow> rows, bool with_gain, bool with_q);

/// call + V / rate, and the sum of |price / measured - 1|.
struct AffineFit {
  Seconds call;
  ByteRate rate;
  double loss;
};
AffineFit fit_affine(std::span<const MeasuredRow> rows);

/// Three pieces over two knees, searched over the sizes that occur.
Pairwise fit_pairwise(std::span<const MeasuredRow> rows);
/// min over two pieces of call + s step + V / (r rate), parted where it predicts best.
CubeMeshConstants fit_cube_mesh(std::span<const MeasuredRow> rows);
/// Two affine pieces with a jump between them. REQUIRES: rows of one kind and number of ranks.
Curve fit_curve(std::span<const MeasuredRow> rows);

}  // namespace rehearse::comm::pieces
