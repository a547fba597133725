// Clusters from YAML: what is read, and every error with its line, key and what was expected.
#include <catch2/catch.hpp>

#include "sim/cluster/catalog.h"
#include "sim/cluster/read_cluster.h"
#include "tests/support/cluster_ways.h"

namespace rehearse::cluster {
namespace {

using test::way;

Cluster read(const std::string& text) {
  const Result<Cluster> cluster = parse_cluster(text, "c.yaml");
  INFO(text);
  INFO((cluster ? "" : to_string(cluster.error())));
  REQUIRE(cluster);
  return *cluster;
}

std::string errors_of(const std::string& text) {
  const Result<Cluster> cluster = parse_cluster(text, "c.yaml");
  INFO(text);
  REQUIRE_FALSE(cluster);
  return to_string(cluster.error());
}

const LinkType& type_named(const Cluster& c, const std::string& name) {
  for (const LinkType& type : c.link_types())
    if (type.name == name) return type;
  FAIL("no link type " << name);
  std::abort();
}

TEST_CASE("a datasheet defines a device, with the links of the GPU that it is like") {
  const Cluster c = read(
      "cluster: {device: {name: twice_h100, like: h100_sxm5_80, memory: 160 GB, "
      "memory_rate: 6 TB/s}, devices_per_node: 8}\n");
  CHECK(c.devices().front().model == "twice_h100");
  CHECK(way(c, 0, 1) == "node0/gpu0 node0/nvswitch node0/gpu1");
  const Result<const Gpu*> gpu = find_gpu("twice_h100");
  REQUIRE(gpu);
  CHECK((*gpu)->memory.b() == 160e9);
  CHECK((*gpu)->memory_rate.bytes_per_s() == 6e12);
  CHECK((*gpu)->fp16_tensor == (*find_gpu("h100_sxm5_80"))->fp16_tensor);
  CHECK_FALSE((*gpu)->mig_instances);
  // In full, and then by its name.
  const std::string sheet =
      "{name: own_chip, memory: 64 GB, memory_rate: 2 TB/s, fp32: 40 TFLOP/s, fp16_tensor: 400 "
      "TFLOP/s, multiprocessors: 100}";
  const Cluster two = read("cluster: {nodes: [{device: " + sheet + "}, {device: own_chip}]}\n");
  CHECK(two.devices()[1].model == "own_chip");
  CHECK(way(two, 0, 1).find("nic") != std::string::npos);
}

TEST_CASE("mistakes in a datasheet are one line each") {
  const auto refused = [](const std::string& sheet) {
    return errors_of("cluster: {device: {" + sheet + "}}\n");
  };
  CHECK(refused("name: one") ==
        "c.yaml:1:19: cluster.device.memory: is missing; a value, or like: GPU\n"
        "c.yaml:1:19: cluster.device.memory_rate: is missing; a value, or like: GPU\n"
        "c.yaml:1:19: cluster.device.fp32: is missing; a value, or like: GPU\n"
        "c.yaml:1:19: cluster.device.multiprocessors: is missing; a value, or like: GPU");
  CHECK(refused("like: h100_sxm5_80").find("name: is missing") != std::string::npos);
  CHECK(refused("name: h100_sxm5_80, like: h100_sxm5_80").find("is a GPU of the catalog") !=
        std::string::npos);
  CHECK(refused("name: a, like: h100_sxm5_8").find("did you mean 'h100_sxm5_80'") !=
        std::string::npos);
  CHECK(refused("name: b, like: h100_sxm5_80, memory: 1 B").find("memory: 1 B is out of range") !=
        std::string::npos);
  read("cluster: {device: {name: again, like: h100_sxm5_80}}\n");
  CHECK(refused("name: again, like: h100_sxm5_80, memory: 90 GB").find("has other values") !=
        std::string::npos);
}

TEST_CASE("a device and counts are enough: the rest has the defaults of the device") {
  const Cluster c = read("cluster: {device: h100_sxm5_80, devices_per_node: 8, nodes: 4}\n");
  CHECK(c.devices().size() == 32);
  CHECK(c.nodes().front().nics.size() == 8);
  CHECK(c.devices().front().model == "h100_sxm5_80");
  CHECK(way(c, 0, 1) == "node0/gpu0 node0/nvswitch node0/gpu1");
  const LinkType& nvlink = type_named(c, "nvlink4_h100_nvswitch");
  CHECK(nvlink.rate.gb_per_s() == Approx(370));
  CHECK(nvlink.latency.us() == Approx(1));  // of each of two links
  CHECK(nvlink.source == "NCCL-ISS");
  CHECK(type_named(c, "ib_ndr_400").rate.gb_per_s() == Approx(47));
}

TEST_CASE("given values replace those of the catalog") {
  const Cluster c = read(
      "cluster:\n"
      "  device: a100_sxm4_80\n"
      "  devices_per_node: 8\n"
      "  nodes: 2\n"
      "  intra_node: nvswitch\n"
      "  inter_node: {links: 4, rate: 200 Gbit/s, latency: 5 us}\n");
  const LinkType& net = type_named(c, "inter_node");
  CHECK(net.rate.gb_per_s() == Approx(25));
  CHECK(net.latency.us() == Approx(2.5));
  CHECK(net.source == "given");
  CHECK(c.nodes().front().nics.size() == 4);
  const Cluster part = read(
      "cluster: {device: a100_sxm4_80, devices_per_node: 8, nodes: 2, inter_node: {rate: 20 "
      "GB/s}}\n");
  CHECK(type_named(part, "inter_node").source == "rate given, latency of ib_hdr_200 (REC)");
}

TEST_CASE("messages of a NIC have the times of the file, else of the kind of its network") {
  const auto nic_of = [](const std::string& inter_node) {
    const auto c = parse_cluster(
        "cluster: {device: h100_sxm5_80, devices_per_node: 8, nodes: 2, inter_node: {kind: switch" +
            inter_node + "}}",
        "c.yaml");
    INFO((c ? "" : to_string(c.error())));
    REQUIRE(c);
    return c->type(LinkId(c->links().size() - 1)).message;
  };
  const MessageTimes usual = {Seconds::us(9.6), Seconds::us(1.4), Bytes::kib(64)}, none;
  CHECK(nic_of("") == usual);
  CHECK(nic_of(", message_cost: 1 us") ==
        MessageTimes{Seconds::us(9.6), Seconds::us(1), Bytes::kib(64)});
  // Neither the rate nor the latency of a link changes them, unless they show another network.
  CHECK(nic_of(", rate: 50 GB/s") == usual);
  CHECK(nic_of(", rate: 50 GB/s, latency: 5 us") == usual);
  CHECK(nic_of(", rate: 50 GB/s, latency: 5 us, half_rate_size: 1 MiB") ==
        MessageTimes{Seconds::us(9.6), Seconds::us(1.4), Bytes::mib(1)});
  CHECK(nic_of(", rate: 50 GB/s, latency: 15 us") == none);
  CHECK(nic_of(", rate: 50 GB/s, latency: 15 us, network: roce") == usual);
  CHECK(nic_of(", rate: 50 GB/s, latency: 5 us, network: efa") == none);
  const auto c = parse_cluster(
      "cluster: {device: h100_sxm5_80, devices_per_node: 8, nodes: 2, inter_node: {kind: switch, "
      "message_cost: 1 s, start_up: -1 us, half_rate_size: -1 B}}",
      "c.yaml");
  REQUIRE_FALSE(c);
  for (const char* key : {"message_cost", "start_up", "half_rate_size"})
    CHECK(to_string(c.error()).find(key) != std::string::npos);
}

TEST_CASE("kinds by name") {
  const auto links = [](const std::string& device, int count, const std::string& intra) {
    return read("cluster: {device: " + device + ", devices_per_node: " + std::to_string(count) +
                (intra.empty() ? "" : ", intra_node: " + intra) + "}\n");
  };
  CHECK(way(links("v100_sxm2_16", 8, ""), 0, 3) == "node0/gpu0 node0/gpu3");
  CHECK(type_named(links("v100_sxm2_16", 8, ""), "nvlink2_v100_pair_1link_x2").rate.gb_per_s() ==
        Approx(45));
  CHECK(way(links("v100_sxm2_32", 16, ""), 0, 15) == "node0/gpu0 node0/nvswitch node0/gpu15");
  CHECK(way(links("h100_pcie_80", 2, "nvlink"), 0, 1) == "node0/gpu0 node0/gpu1");
  CHECK(way(links("h100_sxm5_80", 4, "pcie"), 0, 1) == "node0/gpu0 node0/pcie0 node0/gpu1");
  CHECK(way(links("mi300x", 8, "{rate: 48 GB/s, latency: 2 us}"), 0, 7) == "node0/gpu0 node0/gpu7");
  // Of the catalog: seven links between each two of eight, bridges between cards.
  const Cluster mi300x = read("cluster: {instance: Standard_ND96isr_MI300X_v5, count: 2}\n");
  CHECK(mi300x.route(DeviceId(0), DeviceId(7)).path.rate.gb_per_s() == Approx(48));
  CHECK(way(links("mi250x", 4, ""), 0, 3) == "node0/gpu0 node0/gpu3");
  for (const char* bridged : {"a100_pcie_80", "h100_nvl_94"})
    CHECK(way(links(bridged, 4, "nvlink"), 2, 3) == "node0/gpu2 node0/gpu3");
  // Partitions have no NVLink.
  const Cluster mig = links("'a100_sxm4_80:3g.20gb'", 2, "");
  CHECK(mig.devices()[1].model == "a100_sxm4_80:3g.20gb");
  CHECK(way(mig, 0, 1) == "node0/gpu0 node0/pcie0 node0/cpu0 node0/pcie1 node0/gpu1");
  const auto fabric = [](const std::string& inter) {
    return read("cluster: {device: v100_sxm2_16, devices_per_node: 1, nodes: 16, inter_node: " +
                inter + "}\n");
  };
  CHECK(way(fabric("ethernet"), 0, 9).find("nic0 switch node9/nic0") != std::string::npos);
  CHECK(type_named(fabric("ethernet"), "tcp_100g").rate.gb_per_s() == Approx(9.5));
  CHECK(way(fabric("ring"), 0, 2) == "node0/gpu0 node1/gpu0 node2/gpu0");
  CHECK(way(fabric("{kind: torus, dimensions: [4, 4]}"), 0, 5) ==
        "node0/gpu0 node1/gpu0 node5/gpu0");
  CHECK(way(fabric("{kind: rails, links: 2}"), 0, 5).find("rail") != std::string::npos);
  CHECK(way(fabric("{kind: fat_tree, radix: 8}"), 0, 5).find("spine") != std::string::npos);
  CHECK(way(fabric("{kind: dragonfly, groups: 4, routers: 2}"), 0, 5).find("router") !=
        std::string::npos);
  CHECK(way(fabric("{kind: wan, wan: {rate: 5 Gbit/s, latency: 40 ms}}"), 0, 15)
            .find("region0 region1") != std::string::npos);
  CHECK(type_named(fabric("{kind: wan, link: tcp_1g, wan: {link: tcp_1g}}"), "wan").source ==
        "REC");
}

TEST_CASE("an instance is a row of the catalog") {
  // 8 A100 on NVSwitch and four NICs of 100 Gbit/s: of all four together EFA achieves 45 of 50
  // GB/s.
  const Cluster p4d = read("cluster: {instance: p4d.24xlarge, count: 3}\n");
  CHECK(p4d.devices().size() == 24);
  CHECK(p4d.devices().front().model == "a100_sxm4_40");
  CHECK(p4d.nodes().front().nics.size() == 4);
  CHECK(type_named(p4d, "efa_v1_400_p4d, 1 of 4").rate.gb_per_s() == Approx(45. / 4));
  // 32 of 100 Gbit/s for 8 devices: four of them to each. 16 of 200: two.
  const Cluster p5 = read("cluster: {instance: p5.48xlarge, count: 2}\n");
  CHECK(p5.nodes().front().nics.size() == 8);
  CHECK(type_named(p5, "efa_v2_3200_p5, 1 of 32, 4 together").rate.gb_per_s() == Approx(45));
  const Cluster p5en = read("cluster: {instance: p5en.48xlarge, count: 2}\n");
  CHECK(p5en.nodes().front().nics.size() == 8);
  CHECK(type_named(p5en, "efa_v3_3200_p5en_p6, 1 of 16, 2 together").rate.gb_per_s() ==
        Approx(46.25));
  // Four of 200, and one that is not for the devices.
  const Cluster a3 = read("cluster: {instance: a3-highgpu-8g, count: 2}\n");
  CHECK(a3.nodes().front().nics.size() == 4);
  CHECK(type_named(a3, "gpudirect_tcpx_a3high, 1 of 4").rate.gb_per_s() == Approx(85. / 4));
  // One NIC stays what it was.
  const Cluster p3dn = read("cluster: {instance: p3dn.24xlarge, count: 2}\n");
  CHECK(p3dn.nodes().front().nics.size() == 1);
  CHECK(type_named(p3dn, "efa_v1_100_p3dn").rate.gb_per_s() == Approx(10));
  // "ib_ndr_8x400": eight NICs.
  const Cluster azure = read("cluster: {instance: Standard_ND96isr_H100_v5, count: 2}\n");
  CHECK(azure.nodes().front().nics.size() == 8);
  CHECK(type_named(azure, "ib_ndr_400").rate.gb_per_s() == Approx(47));
  // 25 Gbit/s of an instance of its own kind of Ethernet: as tcp_25g, 2.8 of 3.125 GB/s.
  const Cluster p3 = read("cluster: {instance: p3.16xlarge, count: 2}\n");
  CHECK(type_named(p3, "tcp_25g").rate.gb_per_s() == Approx(2.8));
  const Cluster other =
      read("cluster: {instance: p4d.24xlarge, count: 3, inter_node: {rate: 5 GB/s}}\n");
  CHECK(type_named(other, "inter_node").source == "NCCL-ISS+REC, rate given");
  CHECK(errors_of("cluster: {instance: p4d.24xlrage}\n")
            .find("c.yaml:1:21: cluster.instance: unknown instance 'p4d.24xlrage'") == 0);
}

TEST_CASE("nodes may be of several kinds, each with its own NICs") {
  const Cluster c = read(
      "cluster:\n"
      "  nodes:\n"
      "    - {device: a100_sxm4_80, devices_per_node: 4, count: 2, intra_node: nvswitch}\n"
      "    - {device: v100_sxm2_32, devices_per_node: 8, intra_node: {rate: 20 GB/s, latency: 1 "
      "us}}\n"
      "    - {device: cpu, inter_node: {links: 1, rate: 25 Gbit/s, latency: 20 us}}\n"
      "  inter_node: {links: 2, rate: 100 Gbit/s, latency: 5 us}\n");
  REQUIRE(c.devices().size() == 2 * 4 + 8 + 1);
  CHECK(c.nodes().size() == 4);
  CHECK(c.devices()[7].model == "a100_sxm4_80");
  CHECK(c.devices()[8].model == "v100_sxm2_32");
  CHECK(c.devices()[16].model == kCpu);
  CHECK(c.nodes()[2].nics.size() == 2);
  CHECK(c.nodes()[3].nics.size() == 1);
  CHECK(way(c, 0, 1) == "node0/gpu0 node0/nvswitch node0/gpu1");
  CHECK(type_named(c, "intra_node 2").rate.gb_per_s() == Approx(20));
  // The slower NIC of two counts, and half of the latency of each.
  CHECK(c.route(DeviceId(0), DeviceId(8)).path.rate.gb_per_s() == Approx(12));  // PCIe 3
  CHECK(c.route(DeviceId(0), DeviceId(4)).path.rate.gb_per_s() == Approx(12.5));
  CHECK(c.route(DeviceId(0), DeviceId(16)).path.rate.gb_per_s() == Approx(3.125));
  // As usual for each where nobody says: eight HDR, four EDR, and eight NICs of the instance.
  const Cluster usual = read(
      "cluster:\n"
      "  nodes:\n"
      "    - {device: a100_sxm4_80, devices_per_node: 8}\n"
      "    - {device: v100_sxm2_16, devices_per_node: 8}\n"
      "    - {instance: Standard_ND96isr_H100_v5}\n");
  CHECK(usual.nodes()[0].nics.size() == 8);
  CHECK(usual.nodes()[1].nics.size() == 4);
  CHECK(usual.nodes()[2].nics.size() == 8);
  CHECK(type_named(usual, "ib_edr_100").rate < type_named(usual, "ib_hdr_200").rate);
  // Kinds that are alike are a cluster of one kind.
  const Cluster one = read("cluster: {device: h100_sxm5_80, devices_per_node: 8, nodes: 4}\n");
  const Cluster two = read(
      "cluster: {nodes: [{device: h100_sxm5_80, devices_per_node: 8, count: 3}, {device: "
      "h100_sxm5_80, devices_per_node: 8}]}\n");
  CHECK(one.link_types().size() == two.link_types().size());
  CHECK(one.links().size() == two.links().size());
  for (std::uint32_t d = 1; d < 32; ++d) CHECK(way(one, 0, d) == way(two, 0, d));
}

const std::string kGraph =
    "cluster:\n"
    "  vertices:\n"
    "    - {name: gpu-0, kind: device, node: a, device: t4}\n"
    "    - {name: gpu-1, kind: device, node: b, device: t4}\n"
    "    - {name: leaf, kind: switch}\n"
    "    - {name: disk, kind: storage}\n"
    "  link_types:\n"
    "    - {name: wire, rate: 10 GB/s, latency: 2 us, duplex: half, source: bench of March}\n"
    "  links:\n"
    "    - {a: gpu-0, b: leaf, type: wire}\n"
    "    - {a: gpu-1, b: leaf, type: wire}\n"
    "    - {a: disk, b: leaf, type: tcp_10g}\n"
    "    - {a: gpu-0, b: gpu-1, type: tcp_1g}\n";

TEST_CASE("any graph in full, with routes and changes") {
  const Cluster c = read(kGraph +
                         "  routes:\n"
                         "    - {from: gpu-1, to: gpu-0, links: [gpu-0-gpu-1]}\n"
                         "  changes:\n"
                         "    - {link: leaf-gpu-0, at: 2 s, share: 0.5}\n"
                         "    - {link: gpu-0-leaf, at: 3 s, share: 0}\n");
  CHECK(way(c, 0, 1) == "gpu-0 leaf gpu-1");
  CHECK(way(c, 1, 0) == "gpu-1 gpu-0");
  const LinkType& wire = type_named(c, "wire");
  CHECK(wire.duplex == Duplex::kHalf);
  CHECK(wire.source == "bench of March");
  CHECK(c.route(DeviceId(0), DeviceId(1)).path.latency.us() == Approx(4));
  REQUIRE(c.links()[0].changes.size() == 2);
  CHECK(c.links()[0].changes[1].at == Seconds::s(3));
  CHECK(c.links()[0].changes[1].share == 0);
  CHECK_FALSE(c.vertices().back().forwards);  // storage
}

TEST_CASE("changes of a cluster from a template use the names of its vertices") {
  const Cluster c = read(
      "cluster:\n"
      "  device: v100_sxm2_16\n"
      "  nodes: 2\n"
      "  inter_node: ethernet\n"
      "  changes: [{link: node1/nic0-switch, at: 1 s, share: 0.1}]\n");
  std::size_t changed = 0;
  for (const Link& link : c.links()) changed += !link.changes.empty();
  CHECK(changed == 1);
}

TEST_CASE("each mistake is one clear line") {
  struct Case {
    std::string text, error;
  };
  for (const Case& c : {
           Case{"{}\n", "c.yaml:1:1: cluster: is missing"},
           Case{"cluster: 4\n", "c.yaml:1:10: cluster: is not a mapping; keys and values"},
           Case{"cluster: {}\n", "cluster.device: is missing"},
           Case{"cluster: {device: h100_smx5_80}\n",
                "c.yaml:1:19: cluster.device: unknown device 'h100_smx5_80'; did you mean "
                "'h100_sxm5_80'?"},
           Case{"cluster: {device: t4, node: 4}\n",
                "c.yaml:1:23: cluster.node: unknown key; did you mean 'nodes'?"},
           Case{"cluster: {device: t4, nodes: 0}\n",
                "c.yaml:1:30: cluster.nodes: 0 is out of range; 1 to 131072"},
           Case{"cluster: {device: t4, devices_per_node: 500, nodes: 500}\n",
                "c.yaml:1:53: cluster.nodes: out of range; 1 to 262, for 131072 devices in all"},
           Case{"cluster: {device: t4, nodes: 2, inter_node: {rate: 5}}\n",
                "c.yaml:1:52: cluster.inter_node.rate: '5' has no unit"},
           Case{"cluster: {device: t4, nodes: 2, inter_node: {rate: 0 GB/s}}\n",
                "c.yaml:1:52: cluster.inter_node.rate: is out of range; at least 1 kB/s"},
           Case{"cluster: {device: t4, nodes: 2, inter_node: fat_treee}\n",
                "c.yaml:1:45: cluster.inter_node: unknown value 'fat_treee'; did you mean "
                "'fat_tree'?"},
           Case{"cluster: {device: t4, nodes: 2, inter_node: {link: ib_ndr_40}}\n",
                "cluster.inter_node.link: unknown link 'ib_ndr_40'; did you mean 'ib_ndr_400'?"},
           Case{"cluster: {device: t4, nodes: 2, inter_node: {levels: 3}}\n",
                "c.yaml:1:46: cluster.inter_node.levels: unknown key"},
           Case{"cluster: {device: t4, nodes: 9, inter_node: {kind: torus, dimensions: [2, 4]}}\n",
                "cluster.inter_node.dimensions: the torus has 8 places; a product of 9 devices"},
           Case{"cluster: {device: t4, nodes: 9, inter_node: {kind: dragonfly, groups: 2}}\n",
                "cluster.inter_node.routers: is missing"},
           Case{"cluster: {device: t4, nodes: 9, inter_node: wan}\n",
                "c.yaml:1:45: cluster.inter_node: wan: is missing; wan: {rate: 5 Gbit/s, "
                "latency: 40 ms}"},
           Case{"cluster: {device: t4, devices_per_node: 8, intra_node: mesh}\n",
                "cluster.intra_node: the catalog has no mesh link of 't4'"},
           Case{"cluster: {device: t4, devices_per_node: 3, intra_node: {kind: nvlink_pairs, rate: "
                "1 GB/s, latency: 1 us}}\n",
                "cluster.devices_per_node: pairs of an odd number of devices"},
           Case{"cluster: {nodes: [{device: t4}, {device: t5}]}\n",
                "c.yaml:1:42: cluster.nodes[1].device: unknown device 't5'; did you mean 't4'?"},
           Case{"cluster: {nodes: [1], inter_node: {rate: 1 GB/s}}\n",
                "c.yaml:1:18: cluster.nodes: is not a list of kinds of nodes; [{device: …, count: "
                "…}, "
                "…]"},
           Case{"cluster: {nodes: [{device: t4, nodes: 2}]}\n",
                "c.yaml:1:32: cluster.nodes[0].nodes: unknown key"},
           Case{"cluster: {nodes: [{device: t4}, {device: t4, inter_node: {rate: 5}}]}\n",
                "cluster.nodes[1].inter_node.rate: '5' has no unit"},
           Case{"cluster: {nodes: [{device: t4, count: 131072}, {device: t4}]}\n",
                "cluster.nodes: out of range; at most 131072 devices in all"},
           Case{kGraph + "  routes: [{from: gpu-0, to: gpu-1, links: [gpu-0-leaf, gpu-0-leaf]}]\n",
                "cluster.routes[0].links: the route has a cycle: it passes 'gpu-0' twice; each "
                "vertex once"},
           Case{kGraph + "  routes: [{from: gpu-0, to: gpu-1, links: [disk-leaf]}]\n",
                "cluster.routes[0].links: the route has a gap"},
           Case{kGraph + "  routes: [{from: gpu-0, to: disk, links: [gpu-0-leaf]}]\n",
                "cluster.routes[0].to: 'disk' is not a device; the name of a device"},
           Case{kGraph + "  changes: [{link: gpu-0-leaff, at: 1 s, share: 1}]\n",
                "cluster.changes[0].link: unknown vertex 'leaff'; did you mean 'leaf'?"},
           Case{kGraph + "  changes: [{link: gpu-1-disk, at: 1 s, share: 1}]\n",
                "no link connects 'gpu-1' and 'disk'"},
           Case{kGraph + "  changes: [{link: gpu-1-leaf, at: 1 s, share: 2}]\n",
                "cluster.changes[0].share: is out of range; 0 (down) to 1"},
           Case{kGraph + "    - {a: gpu-0, b: gpu-0, type: wire}\n",
                "cluster.links[4].b: is the same vertex as a; another vertex"},
           Case{kGraph + "    - {a: gpu-0, b: leef, type: wire}\n",
                "c.yaml:14:21: cluster.links[4].b: unknown vertex 'leef'; did you mean 'leaf'?"},
           Case{kGraph + "    - {a: gpu-0, b: leaf, type: wirre}\n",
                "cluster.links[4].type: unknown link type 'wirre'; did you mean 'wire'?"},
           Case{"cluster:\n"
                "  vertices:\n"
                "    - {name: x, kind: device, node: a, device: t4}\n"
                "    - {name: y, kind: device, node: b, device: t4}\n",
                "c.yaml:2:3: cluster: there is no route from 'x' to 'y'; links through vertices "
                "that "
                "forward"},
           Case{"cluster: {vertices: [{name: x, kind: device, device: t4}]}\n",
                "cluster.vertices[0].node: is missing"},
           Case{"cluster: {vertices: [{name: x, kind: swich}]}\n",
                "cluster.vertices[0].kind: unknown value 'swich'; did you mean 'switch'?"},
           Case{"cluster: {vertices: []}\n", "cluster: the cluster has no device"},
       }) {
    const std::string error = errors_of(c.text);
    INFO(error);
    CHECK(error.find(c.error) != std::string::npos);
    CHECK(std::count(error.begin(), error.end(), '\n') == 0);
  }
}

TEST_CASE("all mistakes of a file are reported at once, in their order") {
  CHECK(errors_of("cluster:\n"
                  "  device: h100_sxm5_80\n"
                  "  devices_per_node: eight\n"
                  "  intra_node: {kind: nvswitch, rat: 5 GB/s}\n"
                  "  inter_node: {latency: 5, rate: 200 GBs}\n"
                  "  node: 2\n") ==
        "c.yaml:3:21: cluster.devices_per_node: 'eight' is not a number; a whole number\n"
        "c.yaml:4:32: cluster.intra_node.rat: unknown key; did you mean 'rate'?\n"
        "c.yaml:5:25: cluster.inter_node.latency: '5' has no unit; one of ps, ns, us, ms, s, min, "
        "h, d\n"
        "c.yaml:5:34: cluster.inter_node.rate: unknown unit 'GBs' for a transfer rate; did you "
        "mean 'GB/s'?\n"
        "c.yaml:6:3: cluster.node: unknown key; did you mean 'nodes'?");
}

}  // namespace
}  // namespace rehearse::cluster
