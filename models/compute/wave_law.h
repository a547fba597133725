// The wave law: the time of a matrix product that is cut into tiles, which run in waves over the
// multiprocessors of a device.
//
// For a tile of r × c results and a cut of k into s parts:
//   tiles = batch ⌈m/r⌉ ⌈n/c⌉ s,  waves = ⌈tiles / multiprocessors⌉
//   time  = waves (k/s max(2 r c / (share · factor · peak / multiprocessors), step) + fixed)
//           + reduction
// where `step` is the least time of an element of the sum, which loads and matrix units need one
// after the other, and the reduction of s > 1 parts takes `cut` and writes and reads each part in
// FP32. Times follow the clock of the device. The least of all tiles and cuts
// is taken, as libraries choose; it is not below FLOPs / (cap · factor · peak). A smooth maximum
// (x^q + y^q)^(1/q) combines it with the time to move operands and result once at `memory` of the
// peak rate, and `launch` is added. docs/concepts/op-cost.md has the source, a worked example and
// the errors.
//
// The constants of a shape hold for all devices of a kind of arithmetic; `factor` is the device's.
#pragma once

#include <array>
#include <cstddef>

namespace rehearse::compute {

struct Tile {
  double rows, columns;
  double share;  ///< of the sustained rate; above 1 if few tiles run faster
  double fixed;  ///< s, of a wave
};

inline constexpr std::size_t kTiles = 6;

struct WaveShape {
  std::array<Tile, kTiles> tiles;  ///< a tile that is not square is used in both orientations
  std::size_t count;               ///< number of tiles in use
  double cap;                      ///< of the sustained rate
  double memory;                   ///< of the peak memory rate
  double launch;                   ///< s
  double smooth;                   ///< q
  double clock = 0;                ///< Hz, to which all times refer; 0: they follow no clock
  double step = 0;                 ///< s
  double cut = 0;                  ///< s
};

/// The cost of long operand rows, which a tile reads in distant pieces, and of many of them: with
/// r = m n / (m + n) and x = k / from · r / (r + 760), the rate falls by 1 + extra x⁴ / (1 + x⁴).
/// Pascal shows it in FP32 from about 10,000 summed over, Volta hardly; absent if no table shows
/// it. Source: NeuSight's linear layers on P100, which have 512 to 32,768 rows.
struct Reread {
  double from = 0;  ///< elements of a row; 0: never
  double extra = 0;
};

/// A device as the law sees it, SI units.
struct WaveDevice {
  double multiprocessors;
  double rate;         ///< sustained: factor · peak, FLOP/s
  double memory_rate;  ///< peak, B/s
  Reread reread = {};
  double clock = 0;  ///< Hz; 0: not known
};

struct MatrixProduct {
  double batch, m, n, k;
  double bytes;  ///< operands and result, all of the batch
};

/// A time of the shape on this device, divided by that in the shape.
double pace(const WaveShape& shape, double clock);

/// Seconds. Extents may be fractions (a division of work that does not come out even); those below
/// one count as one. Allocates nothing; a fraction of a microsecond.
double wave_time(const WaveShape& shape, const WaveDevice& device, const MatrixProduct& product);

}  // namespace rehearse::compute
