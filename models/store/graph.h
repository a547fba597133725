// Graph of keys, such as nodes with features: each key reads the values of a number of
// neighbours. And a partition: the worker that holds each key. docs/concepts/partition.md has
// the laws with a worked example.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/store/key_stream.h"
#include "models/store/zipf.h"

namespace rehearse::store {

struct GraphShape {
  std::uint32_t keys;
  std::uint32_t degree;  ///< neighbours that a key reads; some may be the same, or itself
  double exponent;       ///< a neighbour is a key in proportion to its popularity, rank^-exponent
  /// Key k belongs to community k mod `communities`. From 1 to `keys`.
  std::uint32_t communities = 1;
  double inside = 0;  ///< share of the neighbours that are drawn from a key's own community
  std::uint64_t seed = 1;
};

/// keys × degree of a graph that is made as a whole.
inline constexpr double kMostEdges = 4e7;

/// The keys that each key reads. Those of a shape are generated on request, the same each time.
class Neighbours {
 public:
  explicit Neighbours(const GraphShape& shape);
  /// Given neighbours: those of each key in turn, with the end offset of each key. REQUIRES: keys
  /// below ends.size().
  Neighbours(std::vector<std::uint32_t> ends, std::vector<Key> all);

  /// Makes all of them, for repeated access. REQUIRES: no more than kMostEdges.
  void make_all();

  std::uint32_t keys() const { return shape_.keys; }
  std::uint32_t degree(Key node) const {
    return ends_.empty() ? shape_.degree : ends_[node] - begin(node);
  }
  double edges() const {
    return ends_.empty() ? double(shape_.keys) * shape_.degree : double(all_.size());
  }
  /// REQUIRES: node < keys(), j < degree(node).
  Key of(Key node, std::uint32_t j) const;
  const GraphShape& shape() const { return shape_; }  ///< degree 0 if the neighbours were given

 private:
  std::uint32_t begin(Key node) const { return node == 0 ? 0 : ends_[node - 1]; }
  Key made(Key node, std::uint32_t j) const;

  GraphShape shape_;
  Zipf everywhere_, inside_;
  std::vector<std::uint32_t> ends_;  ///< empty where all have the same degree
  std::vector<Key> all_;             ///< empty, or those of each node in turn
};

/// A key and the keys that it reads on each line, whole numbers separated by spaces, on any number
/// of lines (a list of edges); keys are from 0 to the largest one. Fails with the line of an
/// error, and on more than kMostEdges.
Result<Neighbours> recorded_graph(std::string_view text, const std::string& name);

/// The keys that read each key, for a whole graph at once.
struct Readers {
  std::vector<std::uint32_t> first;  ///< keys + 1 offsets
  std::vector<Key> keys = {};        ///< ascending for each key, once for each time they read it
  std::span<const Key> of(Key key) const {
    return {keys.data() + first[key], keys.data() + first[key + 1]};
  }
};

/// REQUIRES: no more than kMostEdges.
Readers readers_of(const Neighbours& graph);

enum class Partitioner : std::uint8_t {
  kRandom,  ///< each key on a worker of its own draw
  kGreedy,  ///< one after another in a random order: where most neighbours are, less where room
            ///< gets scarce (linear deterministic greedy)
  kFennel,  ///< likewise, by Fennel's objective
  kCommunities,  ///< whole communities, in order: an upper bound for known communities
};
inline constexpr std::string_view kPartitionerNames[] = {"random", "greedy", "fennel",
                                                         "communities"};

struct Partition {
  std::uint32_t workers = 1;
  std::vector<std::uint16_t> holder = {};  ///< by key
};
inline constexpr std::uint32_t kMostWorkers = 1024;

/// REQUIRES: 1 to kMostWorkers, and no more than kMostEdges. `kGreedy` (Stanton and Kliot, KDD
/// 2012) fills no worker beyond an equal share, `kFennel` (Tsourakakis et al., WSDM 2014) none
/// beyond 1.1 of one.
Partition partition(const Neighbours& graph, Partitioner by, std::uint32_t workers);

/// The cost of a partition when every key reads all its neighbours.
struct Halo {
  std::uint32_t workers = 1;
  std::uint64_t edges = 0, cut = 0;       ///< key-neighbour pairs; those with two holders
  std::vector<std::uint64_t> held = {};   ///< keys of each worker
  std::vector<std::uint64_t> reads = {};  ///< edges of those keys
  std::vector<std::uint64_t> needs = {};  ///< needs[w × workers + p]: keys of p that w reads

  std::uint64_t total() const;  ///< keys that are read elsewhere, counted once per reading worker
  std::uint64_t of(std::uint32_t reader, std::uint32_t holder) const {
    return needs[std::size_t{reader} * workers + holder];
  }
};
Halo halo_of(const Neighbours& graph, const Partition& partition);

/// The mean of Halo::total() over all random partitions of the graph among the workers,
/// exactly: a key that d others read is missing on each of the n - 1 workers that do not hold it
/// with probability 1 - (1 - 1/n)^d.
double expected_halo(const Readers& readers, std::uint32_t workers);

/// Neighbour sampling by one worker of a partition.
struct Mine {
  const Partition& partition;
  std::uint32_t worker;
};

/// A batch is the set of keys reached from its seeds, hop by hop, through `fan_out` neighbours of
/// every key; it contains each key once. Seeds are all keys in a random order, repeatedly. With
/// `mine`, the seeds are the keys that the worker holds, and the batch is its remote part.
/// Shape::batch counts seeds; keys and seed are the graph's. REQUIRES: the worker holds a key.
KeyStream sampled_keys(const Neighbours& graph, const Shape& shape,
                       std::span<const std::uint32_t> fan_out,
                       const std::optional<Mine>& mine = {});

}  // namespace rehearse::store
