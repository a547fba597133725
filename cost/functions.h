// Small data-parallel jobs on serverless functions: a simple model for jobs that fit in the memory
// of one function.
//
// Each of n functions computes its share of the batch on the vCPUs that come with its memory.
// Gradients are summed through an object store (a reduce-scatter and a gather through the store):
// each function writes its own gradients, reads one part of all others', writes the sum of that
// part, and reads all sums. For many functions this moves 4 × the gradients through each function's
// connection, and costs the latency of 4 requests. A function ends at its time limit; the next one
// starts cold and reads the parameters back. The bill is memory × time of all functions, plus every
// call.
//
//   step  = compute + (2 + 2 (n − 1)/n) × gradients / rate + 4 latency      of n > 1, else compute
//   share = 1 − (cold + parameters / rate) / limit      of each function's time, left for steps
//   time  = steps × step / share
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/estimate.h"
#include "sim/base/result.h"
#include "sim/base/units.h"

namespace rehearse::cost {

/// A service of the catalog with the values that the model uses.
struct FunctionService {
  std::string name;  ///< "aws_lambda"
  Bytes memory;      ///< at most, of one function
  double vcpus;      ///< at that memory
  Seconds limit;     ///< time limit of a call
  Seconds cold;      ///< from a call until its code runs
  ByteRate rate;     ///< rate of a function's connection
  double concurrent;
  double usd_per_byte_second;
  double usd_per_call;
  std::string as_of;  ///< date of the price
};

/// The services whose rows in the catalog are complete.
std::vector<FunctionService> function_services();

struct FunctionJob {
  Flops step;             ///< all samples of a step
  std::uint32_t samples;  ///< samples per step; an upper limit for the number of functions
  Bytes parameters;       ///< as sent; gradients have the same size
  Bytes memory;           ///< memory of a function with one sample at a time
  double steps;
};

/// Rate of single-precision training on one vCPU, a hyperthread with AVX2, and its span (a
/// judgement: 40 GFLOP/s at peak, and frameworks reach a fifth of it to nearly all).
inline constexpr FlopRate kVcpuRate = FlopRate::flop_per_s(20e9);
inline constexpr FlopRate kVcpuRateLow = FlopRate::flop_per_s(8e9);
inline constexpr FlopRate kVcpuRateHigh = FlopRate::flop_per_s(38e9);
/// The latency of one request to an object store.
inline constexpr Seconds kStoreLatency = Seconds::ms(30);

struct FunctionRun {
  Estimate<Seconds> step, time;
  Estimate<Usd> money;
  double calls;
};

/// Fails with one line: more functions than samples or than may run at once, a job that does not
/// fit in the memory, calls too short for one step.
Result<FunctionRun> run_on_functions(const FunctionService& service, const FunctionJob& job,
                                     std::uint32_t functions);

}  // namespace rehearse::cost
