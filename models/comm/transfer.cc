#include "models/comm/transfer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

#include "models/comm/calibration_files.h"
#include "sim/base/check.h"
#include "sim/cluster/catalog.h"

namespace rehearse::comm {
namespace {

// The factor on intervals on a device of the same NVLink generation: B200 and B300 predict each
// other as well as themselves to within a third. Fewer links than were measured: judgement.
constexpr double kSibling = 1.4;
constexpr double kOtherLinks = 2;

/// Four A100 and four H100 on PCIe, two of them without a bridge to the others, send from device to
/// device at this share of the nominal rate (23.6 of 31.5, 47.5 of 63 GB/s). Four and six RTX 4090
/// whose driver allows it reach 0.8.
constexpr double kPeerToPeer = 0.75;
/// Eight RTX 4090 on two processors of AMD copy messages through memory at this share (14.9 of
/// 31.5 GB/s).
constexpr double kThroughMemory = 0.47;

/// Measured ÷ predicted on machines other than those of the calibrations, by band and by the rule of
/// docs/concepts/intervals.md, from five or six of them (docs/decisions/0166). Hosts, virtual
/// machines and older versions of NCCL start later; none is much quicker.
constexpr Spreads kMachines = {{{0.67, 1.98}, {0.73, 2.84}, {0.66, 1.69}, {0.96, 1.21}}};

/// Devices that may be missing from the catalog, with a similar device and their number of NVLinks.
struct Variant {
  std::string_view device, like;
  std::uint32_t links;
};
// A800 and H800 are A100 and H100 with eight NVLinks (400 GB/s both directions); H20 has all of
// H100's. H800 measured: 215 GB/s of bus bandwidth, where H100 gives 475 (NCCL issue 1374).
constexpr Variant kVariants[] = {{"a800_sxm4_80", "a100_sxm4_80", 8},
                                 {"h800", "h100_sxm5_80", 8},
                                 {"h800_sxm5_80", "h100_sxm5_80", 8},
                                 {"h20_sxm5_96", "h100_sxm5_80", 18}};

const Calibration* find(std::string_view device) {
  for (const Calibration& c : shipped_calibrations())
    if (c.device == device) return &c;
  return nullptr;
}

void scale(ByteRate& rate, double by) { rate = rate * by; }
void scale(LowLatency& l, double latency, double rate, double copy) {
  for (Seconds* t : {&l.call, &l.step, &l.ramp}) *t = *t * latency;
  scale(l.rate, rate);
  scale(l.copy, copy);
}
void scale(Simple& s, double latency, double rate, double copy) {
  for (Seconds* t : {&s.call, &s.step}) *t = *t * latency;
  scale(s.rate, rate);
  scale(s.copy, copy);
  if (s.gather_copy) scale(*s.gather_copy, copy);
}

/// Scales latencies, wire rates, and the work of the device itself: copies, messages in LL.
void scale(Calibration& c, double latency, double rate, double copy) {
  if (c.switched) {
    SwitchedConstants& s = *c.switched;
    scale(s.ll, latency, rate, copy);
    scale(s.ll128, latency, rate, copy);
    scale(s.simple, latency, rate, copy);
    if (s.nvls) {
      s.nvls->call = s.nvls->call * latency;
      scale(s.nvls->rate, rate);
    }
    if (s.pairwise) {
      scale(s.pairwise->small, latency, copy, copy);  // bound by the device, not by the wire
      scale(s.pairwise->middle, latency, rate, copy);
      scale(s.pairwise->large, latency, rate, copy);
    }
  }
  if (c.cube_mesh) {
    scale(c.cube_mesh->small, latency, rate, copy);
    scale(c.cube_mesh->large, latency, rate, copy);
  }
  for (Curve& curve : c.curves) {
    scale(curve.below, latency, rate, copy);
    scale(curve.above, latency, rate, copy);
  }
  if (c.send_recv) {
    scale(c.send_recv->below, latency, rate, copy);
    scale(c.send_recv->above, latency, rate, copy);
  }
}

void widen(Calibration& c, double by) {
  for (Widths* widths : {&c.ring_widths, &c.pairwise_widths, &c.send_recv_widths})
    for (double& w : *widths) w *= by;
}

tl::unexpected<Error> unknown(std::string_view device, const std::string& why) {
  return fail(fmt::format("{}: {}", device, why),
              "measure it: nccl-tests, then 'rehearse calibrate nccl LOG -o FILE' and "
              "--calibration FILE");
}

ByteRate pcie_rate(const cluster::Gpu& gpu) {
  const cluster::Pcie slot = gpu.pcie.value_or(cluster::Pcie{3, 16});
  return ByteRate::gb_per_s(0.985 * slot.lanes * std::exp2(slot.generation - 3.0));
}

/// The rates of messages without NVLink on three kinds of hosts, rising: the host of L40S copies them
/// through memory slowly (20 GB/s with 2 ranks, 5 with 4, 1.5 with 8), another copies them quickly, and
/// a third sends from device to device. No specification says which a host is.
std::array<ByteRate, 3> host_rates(ByteRate slow, ByteRate pcie) {
  std::array<ByteRate, 3> rates = {slow, pcie * kThroughMemory, pcie * kPeerToPeer};
  std::ranges::sort(rates);
  return rates;
}

/// A curve whose messages are copied `faster` times as fast. Where large messages start later than small
/// ones, that is time of copies, up to what small messages of that size take for theirs: L40S fits 10 ms
/// of start-up to exchanges of 8 ranks above 16 MiB, and copies 16 MiB in 14 ms below.
void copy_faster(Curve& curve, double faster) {
  const double later = (curve.above.call - curve.below.call).s();
  const double copies = std::clamp(later, 0.0, (curve.knee / curve.below.rate).s());
  curve.above.call = curve.above.call - Seconds::s(copies - copies / faster);
  for (LowLatency* piece : {&curve.below, &curve.above}) piece->rate = piece->rate * faster;
}

/// Without NVLink, on a machine that was not measured: the median of the three kinds of hosts, with an
/// interval that holds all.
Calibrated through_host(const cluster::Gpu& gpu) {
  const Calibration& staged = *find("l40s");
  const Result<const cluster::Gpu*> measured = cluster::find_gpu(staged.device);
  REHEARSE_CHECK(measured.has_value(), "{}", staged.device);
  Calibrated made = carried_over(staged, {gpu.name, staged.generation, 0, 1}, 1);
  made.note = fmt::format(
      "{} has no rows: messages through the host, the median of L40S, whose host copies them "
      "slowly, of a host that copies them quickly, and of PCIe from device to device; machines "
      "differ, and a measured one decides (nccl-tests, rehearse calibrate nccl)",
      gpu.name);
  const ByteRate pcie = pcie_rate(gpu);
  for (Curve& curve : made.calibration.curves) {
    const ByteRate own = curve.above.rate;
    const std::array<ByteRate, 3> rates = host_rates(own * (pcie / pcie_rate(**measured)), pcie);
    curve.spread = {rates[1] / rates[2], rates[1] / rates[0]};
    copy_faster(curve, rates[1] / own);
  }
  return made;
}

/// The measured host of a device without NVLink, with an interval that holds the other kinds.
Calibrated on_measured_host(const Calibration& own) {
  const Result<const cluster::Gpu*> gpu = cluster::find_gpu(own.device);
  REHEARSE_CHECK(gpu.has_value(), "{}", own.device);
  Calibrated made{.calibration = own, .provenance = Provenance::kExtrapolated};
  made.note = fmt::format(
      "{} was measured on one host; others move messages up to 16 times as fast, and a measured "
      "one decides (nccl-tests, rehearse calibrate nccl)",
      own.device);
  for (Curve& curve : made.calibration.curves) {
    const ByteRate rate = curve.above.rate;
    const std::array<ByteRate, 3> rates = host_rates(rate, pcie_rate(**gpu));
    curve.spread = {rate / rates[2], rate / rates[0]};
  }
  return made;
}

/// The measured device of a GPU's NVLink generation and fabric.
Result<const Calibration*> sibling(const cluster::Gpu& gpu) {
  if (gpu.vendor != "nvidia")
    return unknown(gpu.name, "only collectives of NVIDIA devices were measured");
  const bool bridged = gpu.link->kind == "nvlink_bridge";
  std::string_view like;
  switch (gpu.link->generation) {
    case 2:
      if (!bridged) like = "v100_sxm2_16";
      break;
    case 3: like = bridged ? "a100_pcie_80" : "a100_sxm4_80"; break;
    case 4: like = bridged ? "h100_pcie_80" : "h100_sxm5_80"; break;
    case 5: like = "b200_sxm_180"; break;
    default: break;
  }
  if (const Calibration* found = find(like)) return found;
  return unknown(gpu.name, fmt::format("no device with NVLink {} in such a fabric was measured",
                                       gpu.link->generation));
}

}  // namespace

const std::vector<Calibration>& shipped_calibrations() {
  static const std::vector<Calibration> kAll = [] {
    std::vector<Calibration> all;
    for (const std::string_view text : calibration_files::all()) {
      Result<Calibration> read = parse_calibration(std::string(text), "shipped calibration");
      REHEARSE_CHECK(read.has_value(), "{}", to_string(read.error()));
      all.push_back(std::move(*read));
    }
    return all;
  }();
  return kAll;
}

Calibrated carried_over(const Calibration& from, const Unmeasured& to, double by) {
  Calibrated carried{.calibration = from,
                     .provenance = Provenance::kDatasheet,
                     .note = fmt::format("{} has no rows: as {}", to.device, from.device)};
  if (to.ratio != 1)
    carried.note += fmt::format(", with {:.3g} times its NVLink bandwidth", to.ratio);
  Calibration& c = carried.calibration;
  c.device = to.device;
  c.links = to.links;
  if (to.generation == from.generation) {
    scale(c, 1, to.ratio, 1);
  } else {
    // Copies of A100, H100 and B200 scale about as the square root of their NVLink bandwidths.
    c.generation = to.generation;
    if (c.switched) {
      c.switched->nvls = std::nullopt;
      c.switched->simple.gather_copy = std::nullopt;  // twice as dear on A100, and on no other
    }
    scale(c, 1, to.ratio, std::sqrt(to.ratio));
  }
  widen(c, by);
  return carried;
}

namespace {

Result<Calibrated> nearest(std::string_view device, std::optional<Fabric> fabric) {
  if (device.find(':') != std::string_view::npos)
    return unknown(device, "partitions of a device cannot communicate with each other");
  const bool staged = fabric == Fabric::kHostStaged;
  const Calibration* own = find(device);
  if (own && own->fabric == Fabric::kHostStaged) return on_measured_host(*own);
  if (own && !staged) return Calibrated{.calibration = *own};
  for (const Variant& v : kVariants)
    if (v.device == device) {
      const Calibration* like = find(v.like);
      const double ratio = 1.0 * v.links / like->links;
      return carried_over(*like, {std::string(device), like->generation, v.links, ratio},
                          ratio == 1 ? kSibling : kOtherLinks);
    }
  const cluster::Gpu& gpu = *TRY(cluster::find_gpu(device));
  const bool bridged = gpu.link && gpu.link->kind == "nvlink_bridge";
  if (gpu.vendor == "nvidia" && (staged || !gpu.link || (bridged && !fabric)))
    return through_host(gpu);
  const Calibration& like = *TRY(sibling(gpu));
  const Result<const cluster::Gpu*> measured = cluster::find_gpu(like.device);
  REHEARSE_CHECK(measured.has_value() && (*measured)->link, "{}", like.device);
  const double ratio = gpu.link->per_direction / (*measured)->link->per_direction;
  const auto links = static_cast<std::uint32_t>(std::lround(like.links * ratio));
  return carried_over(like, {std::string(device), like.generation, links, ratio},
                      ratio == 1 ? kSibling : kOtherLinks);
}

}  // namespace

Result<Calibrated> calibration_for(std::string_view device, std::optional<Fabric> fabric) {
  Calibrated found = TRY(nearest(device, fabric));
  if (found.calibration.fabric != Fabric::kHostStaged) found.machines = kMachines;
  return found;
}

Result<Calibrated> anchored(Calibrated calibrated, const Group& group, Bytes size,
                            Seconds measured) {
  const CollectiveCost cost = TRY(CollectiveCost::resolve(calibrated, group));
  const double factor = measured.s() / cost.seconds(size.b());
  if (!(factor > 0.1 && factor < 10))
    return fail(fmt::format("{} for {} of {} is {:.2g} times the expected time",
                            to_string(measured), to_string(group.kind), to_string(size), factor),
                "the time of a small collective, as nccl-tests prints it");
  // Observed when H100 and B200 were anchored on each other. If A100 takes part, errors are twice
  // as large (docs/accuracy.md).
  constexpr Widths kAnchored = {0.2, 0.3, 0.35, 0.15};
  scale(calibrated.calibration, factor, 1, 1);
  for (std::size_t b = 0; b < kBands; ++b) {
    for (Widths* widths :
         {&calibrated.calibration.ring_widths, &calibrated.calibration.pairwise_widths})
      (*widths)[b] = std::max((*widths)[b], kAnchored[b]);
  }
  calibrated.provenance = std::max(calibrated.provenance, Provenance::kExtrapolated);
  calibrated.note += fmt::format("{}latencies times {:.3g}, from one measured collective",
                                 calibrated.note.empty() ? "" : "; ", factor);
  return calibrated;
}

}  // namespace rehearse::comm
