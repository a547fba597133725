// What operations take on the mock GPU: a roofline, the same for the mock libraries and for the
// tests that check what was measured.
#pragma once

#include <algorithm>

namespace rehearse::mock {

// Seconds, bytes, operations.
inline constexpr double kLaunch = 2e-6;                // of a kernel
inline constexpr double kMatrixRate = 400e12;          // FLOP/s in half precision
inline constexpr double kMemoryRate = 2e12;            // B/s
inline constexpr double kCacheRate = 3 * kMemoryRate;  // of operands that L2 holds
inline constexpr double kHostRate = 50e9;              // of pinned memory
inline constexpr double kPageableRate = 10e9;
inline constexpr double kPeerRate = 300e9;
inline constexpr double kL2 = 50e6;     // B
inline constexpr double kNoise = 0.02;  // standard deviation ÷ mean, of one launch

/// Slower for wider formats.
inline double rate_of(double element_bytes) { return kMatrixRate * 2 / element_bytes; }

/// `held`: the operands are in L2, as they fit and were not flushed.
inline double kernel(double flops, double rate, double bytes, bool held) {
  const double memory = bytes / (held && bytes <= kL2 ? kCacheRate : kMemoryRate);
  return kLaunch + std::max(flops / rate, memory);
}

inline double gemm(double m, double n, double k, double batch, double element, bool held) {
  return kernel(2 * m * n * k * batch, rate_of(element), element * batch * (m * k + k * n + m * n),
                held);
}

inline double attention(double heads, double m, double n, double d, double element, bool held) {
  return kernel(4 * heads * m * n * d, 0.5 * rate_of(element), element * heads * d * 2 * (m + n),
                held);
}

inline double copy(double bytes, double rate) { return kLaunch + bytes / rate; }

/// A ring: a number of steps, each with a share of the bytes.
inline double ring(double bytes, double ranks, double steps) {
  return 10e-6 + steps * bytes / ranks / kPeerRate;
}

}  // namespace rehearse::mock
