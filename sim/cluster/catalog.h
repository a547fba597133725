// The catalog: published facts on GPUs, MIG profiles, cloud instances and links, each with its
// source. Its files are sim/cluster/catalog/*.csv, compiled into the program.
// docs/concepts/catalog.md describes them, and how to add a row.
//
// Invariants of the shipped tables (checked when they are read, and by tests/unit/catalog_test.cc):
//  1. Names are unique within a table.
//  2. An unknown or inapplicable value is absent, never zero.
//  3. Every row names sources that are in sources.csv, and a date.
// They are read once, at first use, and kept for the life of the program; safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/units.h"
#include "sim/cluster/network_kind.h"
#include "sim/cluster/origin.h"

namespace rehearse::cluster {

/// The links of one GPU to others of its kind, all together.
struct GpuLink {
  std::string kind;  ///< "nvlink", "nvlink_bridge", "infinity_fabric", "neuronlink"
  std::uint32_t generation;
  std::uint32_t count;
  ByteRate both_directions;  ///< as advertised
  ByteRate per_direction;
};

struct Pcie {
  std::uint32_t generation;
  std::uint32_t lanes;
};

struct Gpu {
  std::string name;  ///< "h100_sxm5_80"
  std::string vendor;
  std::string architecture;
  std::string form_factor;
  std::string release;             ///< month, "2022-10"
  std::uint32_t multiprocessors;   ///< SMs, CUs or cores
  std::optional<double> boost_hz;  ///< highest clock
  // Peak rates, dense (no sparsity). "tensor" means matrix units; the others are ordinary cores.
  std::optional<FlopRate> fp64;
  std::optional<FlopRate> fp64_tensor;
  FlopRate fp32;
  std::optional<FlopRate> tf32_tensor;
  std::optional<FlopRate> fp16;
  std::optional<FlopRate> fp16_tensor;
  std::optional<FlopRate> bf16_tensor;
  std::optional<FlopRate> fp8_tensor;
  Bytes memory;  ///< as advertised, GB = 10^9; usable memory differs by a few percent
  std::string memory_type;
  ByteRate memory_rate;
  std::optional<Bytes> l2;
  std::optional<GpuLink> link;
  std::optional<Pcie> pcie;
  std::optional<Watts> power_limit;
  std::optional<Watts> idle_power;
  std::string compute_capability;              ///< or another vendor's name of it; may be empty
  std::optional<std::uint32_t> mig_instances;  ///< at most at once; absent: no MIG
  std::string mig_family;  ///< family in mig_profiles(); empty: no MIG, or unknown profiles
  /// For a partition, its device (partition.h); `memory` is then the usable memory.
  std::string partition_of = {};
  Origin origin;
};

/// A GPU instance of MIG. It takes `memory_slices` consecutive positions from one of
/// `placement_starts`, of `memory_slices_total`; positions of two instances may not overlap.
struct MigProfile {
  std::string family;  ///< as Gpu::mig_family
  std::string name;    ///< "3g.40gb"; unique within a family
  std::uint32_t compute_slices;
  std::uint32_t compute_slices_total;
  std::uint32_t memory_slices;
  std::uint32_t memory_slices_total;
  Bytes memory;                        ///< as its name says
  std::optional<Bytes> usable_memory;  ///< as nvidia-smi prints it
  std::optional<std::uint32_t> multiprocessors;
  std::uint32_t copy_engines;
  std::uint32_t nvml_id;
  std::uint32_t max_instances;
  std::vector<std::uint32_t> placement_starts;
  std::uint32_t placement_size;  ///< in positions
  bool media_extensions;
  Origin origin;
};

/// A cloud machine; its price is in cost::instance_prices().
struct Instance {
  std::string provider;  ///< "aws"
  std::string name;      ///< "p5.48xlarge"; unique over all providers
  std::string family;
  std::string gpu;   ///< a name in gpus()
  double gpu_count;  ///< a fraction where a GPU is shared
  std::optional<std::uint32_t> vcpus;
  std::optional<Bytes> memory;
  std::optional<Bytes> local_storage;  ///< NVMe; zero where it has none
  std::optional<ByteRate> network;     ///< total rate of all NICs of the instance, one direction
  std::string network_kind;
  std::optional<ByteRate> storage_network;
  std::string gpu_interconnect;                      ///< "none", "pcie", "nvswitch", …
  std::optional<ByteRate> gpu_link_both_directions;  ///< per GPU
  std::optional<std::uint32_t> pcie_generation;
  Origin origin;
};

enum class LinkKind {
  kIntraNode,  ///< GPU to GPU in a node
  kHost,       ///< host to GPU
  kInterNode,
};
std::string_view to_string(LinkKind);

struct LinkSpec {
  std::string name;  ///< "ib_ndr_400"
  LinkKind kind;
  std::optional<ByteRate> nominal;        ///< as advertised, with the scope `nominal_scope`
  std::string nominal_scope;              ///< "both directions, per GPU", "per port", …
  std::optional<ByteRate> per_direction;  ///< nominal
  std::optional<ByteRate> achieved;       ///< by long messages, in one direction
  std::optional<Seconds> latency;
  std::string latency_kind;            ///< scope of the latency
  MessageTimes message;                ///< of a NIC; zeros where it is unknown
  std::optional<NetworkKind> network;  ///< between nodes; absent: none of these
  Origin origin;
};

const std::vector<Gpu>& gpus();
const std::vector<MigProfile>& mig_profiles();
const std::vector<Instance>& instances();
const std::vector<LinkSpec>& links();

/// The row of that name, never null; or an error with the nearest name. "a100_sxm4_80:3g.40gb" is
/// that partition of the GPU, and fails as mig_device and find_profile do.
Result<const Gpu*> find_gpu(std::string_view name);
Result<const Instance*> find_instance(std::string_view name);
Result<const LinkSpec*> find_link(std::string_view name);
/// The same, or null if there is none: for frequent lookups of optional names.
const LinkSpec* link_named(std::string_view name);

/// Those of its family; empty where there are none.
std::vector<const MigProfile*> mig_profiles_of(const Gpu& gpu);

/// The table from text in the format of the shipped file; `name` is the file name in messages.
Result<std::vector<LinkSpec>> parse_links(std::string_view text, std::string name);

}  // namespace rehearse::cluster
