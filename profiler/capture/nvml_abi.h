// NVIDIA's management library, as far as we use it: our own declarations. Its interface only grows;
// functions that an old driver's library lacks are not used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rehearse::capture::nvml {

using Device = void*;
using Result = int;
inline constexpr Result kSuccess = 0;
inline constexpr Result kNotSupported = 3;
inline constexpr Result kNoPermission = 4;
inline constexpr Result kGpuIsLost = 15;

inline constexpr unsigned kClockCore = 1;  ///< of the multiprocessors
inline constexpr unsigned kClockMemory = 2;
inline constexpr unsigned kSensorGpu = 0;
inline constexpr std::size_t kTextBytes = 96;  ///< of names, UUIDs and versions

/// A value that is requested by its number.
struct FieldValue {
  std::uint32_t field;
  std::uint32_t scope;
  std::int64_t time;     ///< us since 1970
  std::int64_t latency;  ///< us
  std::uint32_t type;    ///< ValueType
  Result result;
  union {
    double as_double;
    std::uint64_t as_u64;
    std::int64_t as_i64;
    std::uint32_t as_u32;
    std::int32_t as_i32;
    std::uint16_t as_u16;
  } value;
};
static_assert(offsetof(FieldValue, type) == 24 && offsetof(FieldValue, value) == 32 &&
              sizeof(FieldValue) == 40);

enum ValueType : std::uint32_t {
  kDouble = 0,
  kU32 = 1,
  kLong = 2,
  kU64 = 3,
  kI64 = 4,
  kI32 = 5,
  kU16 = 6,
};

inline constexpr std::uint32_t kPowerInstant = 186;  ///< mW

/// Attributes of a MIG instance.
struct Attributes {
  std::uint32_t multiprocessors;
  std::uint32_t copy_engines, decoders, encoders, jpegs, optical_flows;
  std::uint32_t gpu_slices, compute_slices;
  std::uint64_t memory_mib;
};
static_assert(offsetof(Attributes, memory_mib) == 32 && sizeof(Attributes) == 40);

/// The functions, by their names in the library; null if it lacks them.
struct Functions {
  Result (*init)();
  Result (*shutdown)();
  Result (*driver_version)(char*, unsigned);
  Result (*count)(unsigned*);
  Result (*by_index)(unsigned, Device*);
  Result (*uuid)(Device, char*, unsigned);
  Result (*name)(Device, char*, unsigned);
  Result (*power_limit)(Device, unsigned*);
  Result (*energy)(Device, unsigned long long*);
  Result (*power)(Device, unsigned*);
  Result (*fields)(Device, int, FieldValue*);
  Result (*clock)(Device, unsigned, unsigned*);
  Result (*temperature)(Device, unsigned, unsigned*);
  Result (*reasons)(Device, unsigned long long*);
  Result (*mig_mode)(Device, unsigned* now, unsigned* pending);
  Result (*max_instances)(Device, unsigned*);
  Result (*instance)(Device, unsigned, Device*);
  Result (*gpu_instance)(Device, unsigned*);
  Result (*compute_instance)(Device, unsigned*);
  Result (*attributes)(Device, Attributes*);
};

}  // namespace rehearse::capture::nvml
