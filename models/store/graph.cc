#include "models/store/graph.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/core.h>

#include "models/store/seen.h"
#include "sim/base/check.h"
#include "sim/base/text.h"

namespace rehearse::store {
namespace {

std::uint32_t largest_community(const GraphShape& shape) {
  return (shape.keys + shape.communities - 1) / shape.communities;
}

/// The workers that hold neighbours of a key, and how much each attracts the key.
class Streaming {
 public:
  Streaming(const Neighbours& graph, Partitioner by, std::uint32_t workers)
      : fennel_(by == Partitioner::kFennel), load_(workers, 0), wanted_(workers, 0) {
    const double n = graph.keys(), k = workers, m = graph.edges();
    room_ = std::ceil(n / k * (fennel_ ? 1.1 : 1));
    alpha_ = m * std::sqrt(k) / std::pow(n, 1.5);
  }

  void want(std::uint32_t worker) { ++wanted_[worker]; }

  /// Ties go to the emptiest worker, then to the first.
  std::uint32_t place() {
    std::uint32_t best = 0;
    double most = -std::numeric_limits<double>::infinity();
    for (std::uint32_t w = 0; w < load_.size(); ++w) {
      if (load_[w] >= room_) continue;
      const double worth = fennel_ ? wanted_[w] - alpha_ * 1.5 * std::sqrt(load_[w])
                                   : wanted_[w] * (1 - load_[w] / room_);
      if (worth > most || (worth == most && load_[w] < load_[best])) best = w, most = worth;
    }
    ++load_[best];
    std::fill(wanted_.begin(), wanted_.end(), 0);
    return best;
  }

 private:
  bool fennel_;
  double room_ = 0, alpha_ = 0;
  std::vector<double> load_, wanted_;
};

}  // namespace

Neighbours::Neighbours(const GraphShape& shape)
    : shape_(shape),
      everywhere_(shape.keys, shape.exponent),
      inside_(largest_community(shape), shape.exponent) {
  REHEARSE_CHECK(shape.communities >= 1 && shape.communities <= shape.keys);
}

Neighbours::Neighbours(std::vector<std::uint32_t> ends, std::vector<Key> all)
    : shape_{.keys = static_cast<std::uint32_t>(ends.size()), .degree = 0, .exponent = 0},
      everywhere_(1, 0),
      inside_(1, 0),
      ends_(std::move(ends)),
      all_(std::move(all)) {
  REHEARSE_CHECK(!ends_.empty() && ends_.back() == all_.size());
}

void Neighbours::make_all() {
  REHEARSE_CHECK(edges() <= kMostEdges);
  if (!all_.empty() || !ends_.empty()) return;
  std::vector<Key> all;
  all.reserve(std::size_t{shape_.keys} * shape_.degree);
  for (Key node = 0; node < shape_.keys; ++node)
    for (std::uint32_t j = 0; j < shape_.degree; ++j) all.push_back(made(node, j));
  all_ = std::move(all);
}

Key Neighbours::of(Key node, std::uint32_t j) const {
  if (!ends_.empty()) return all_[begin(node) + j];
  return all_.empty() ? made(node, j) : all_[std::size_t{node} * shape_.degree + j];
}

Key Neighbours::made(Key node, std::uint32_t j) const {
  Random random = random_stream(shape_.seed, std::uint64_t{node} << 32 | j);
  if (shape_.communities == 1 || random.uniform() >= shape_.inside) return everywhere_.draw(random);
  for (;;) {
    const std::uint64_t key =
        std::uint64_t{inside_.draw(random)} * shape_.communities + node % shape_.communities;
    if (key < shape_.keys) return static_cast<Key>(key);
  }
}

Result<Neighbours> recorded_graph(std::string_view text, const std::string& name) {
  std::vector<std::pair<Key, Key>> edges;
  Key last = 0;
  std::uint32_t line_number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++line_number;
    std::optional<Key> reader;
    for (const std::string_view padded : split(line, ' ')) {
      const std::string_view word = trim(padded);
      if (word.empty()) continue;
      Key key = 0;
      const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), key);
      if (error != std::errc{} || rest != word.data() + word.size() || key >= kMostEdges)
        return fail(
            Diagnostic{.file = name,
                       .line = line_number,
                       .problem = fmt::format("'{}' is not a key", word),
                       .expected = fmt::format("keys below {:g} between spaces", kMostEdges)});
      last = std::max(last, key);
      if (reader) edges.emplace_back(*reader, key);
      if (!reader) reader = key;
    }
    if (static_cast<double>(edges.size()) > kMostEdges)
      return fail(Diagnostic{.file = name,
                             .line = line_number,
                             .problem = "too many neighbours",
                             .expected = fmt::format("{:g} at most", kMostEdges)});
  }
  if (edges.empty())
    return fail_in(name, "holds no neighbours", "on each line a key and the keys that it reads");
  const auto by_reader = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(edges.begin(), edges.end(), by_reader);
  std::vector<std::uint32_t> ends(std::size_t{last} + 1, 0);
  std::vector<Key> all;
  for (const auto& [reader, key] : edges) {
    all.push_back(key);
    ++ends[reader];
  }
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  return Neighbours(std::move(ends), std::move(all));
}

Readers readers_of(const Neighbours& graph) {
  REHEARSE_CHECK(graph.edges() <= kMostEdges);
  Readers readers{.first = std::vector<std::uint32_t>(graph.keys() + 1, 0)};
  for (Key node = 0; node < graph.keys(); ++node)
    for (std::uint32_t j = 0; j < graph.degree(node); ++j) ++readers.first[graph.of(node, j) + 1];
  std::partial_sum(readers.first.begin(), readers.first.end(), readers.first.begin());
  readers.keys.resize(readers.first.back());
  std::vector<std::uint32_t> next(readers.first.begin(), readers.first.end() - 1);
  for (Key node = 0; node < graph.keys(); ++node)
    for (std::uint32_t j = 0; j < graph.degree(node); ++j)
      readers.keys[next[graph.of(node, j)]++] = node;
  return readers;
}

Partition partition(const Neighbours& graph, Partitioner by, std::uint32_t workers) {
  const GraphShape& shape = graph.shape();
  REHEARSE_CHECK(workers >= 1 && workers <= kMostWorkers);
  Partition made{.workers = workers, .holder = std::vector<std::uint16_t>(shape.keys, 0)};
  Random random = random_stream(shape.seed, workers);
  if (by == Partitioner::kRandom) {
    for (std::uint16_t& holder : made.holder)
      holder = static_cast<std::uint16_t>(random.below(workers));
    return made;
  }
  if (by == Partitioner::kCommunities) {
    for (Key key = 0; key < shape.keys; ++key)
      made.holder[key] = static_cast<std::uint16_t>(std::uint64_t{key % shape.communities} *
                                                    workers / shape.communities);
    return made;
  }
  const Readers readers = readers_of(graph);
  std::vector<bool> placed(shape.keys, false);
  Streaming streaming(graph, by, workers);
  for (const Key key : shuffled(shape.keys, random)) {
    const auto want = [&](Key other) {
      if (placed[other]) streaming.want(made.holder[other]);
    };
    for (std::uint32_t j = 0; j < graph.degree(key); ++j) want(graph.of(key, j));
    for (const Key reader : readers.of(key)) want(reader);
    made.holder[key] = static_cast<std::uint16_t>(streaming.place());
    placed[key] = true;
  }
  return made;
}

std::uint64_t Halo::total() const {
  return std::accumulate(needs.begin(), needs.end(), std::uint64_t{0});
}

Halo halo_of(const Neighbours& graph, const Partition& partition) {
  const std::size_t workers = partition.workers;
  Halo halo{.workers = partition.workers,
            .held = std::vector<std::uint64_t>(workers, 0),
            .reads = std::vector<std::uint64_t>(workers, 0),
            .needs = std::vector<std::uint64_t>(workers * workers, 0)};
  std::vector<std::vector<Key>> held(workers);
  for (Key key = 0; key < graph.keys(); ++key) held[partition.holder[key]].push_back(key);
  Seen seen(graph.keys());
  for (std::size_t w = 0; w < workers; ++w) {
    halo.held[w] = held[w].size();
    seen.forget();
    for (const Key key : held[w])
      for (std::uint32_t j = 0; j < graph.degree(key); ++j) {
        const Key neighbour = graph.of(key, j);
        const std::size_t holder = partition.holder[neighbour];
        ++halo.edges;
        ++halo.reads[w];
        if (holder == w) continue;
        ++halo.cut;
        if (seen.first(neighbour)) ++halo.needs[w * workers + holder];
      }
  }
  return halo;
}

double expected_halo(const Readers& readers, std::uint32_t workers) {
  const double n = workers;
  double sum = 0;
  for (Key key = 0; key + 1 < readers.first.size(); ++key) {
    double distinct = 0;
    std::optional<Key> last;
    for (const Key reader : readers.of(key)) {
      if (reader != key && last != reader) ++distinct;
      last = reader;
    }
    sum += 1 - std::pow(1 - 1 / n, distinct);
  }
  return (n - 1) * sum;
}

KeyStream sampled_keys(const Neighbours& graph, const Shape& shape,
                       std::span<const std::uint32_t> fan_out, const std::optional<Mine>& mine) {
  const GraphShape& of = graph.shape();
  KeyStream stream{.keys = of.keys};
  Random random(mixed(of.seed));
  std::vector<Key> seeds = shuffled(of.keys, random);
  const auto is_mine = [&](Key key) { return mine && mine->partition.holder[key] == mine->worker; };
  if (mine) std::erase_if(seeds, [&](Key key) { return !is_mine(key); });
  REHEARSE_CHECK(!seeds.empty());
  Seen seen(of.keys);
  std::size_t next_seed = 0;
  std::vector<Key> batch;
  for (std::uint32_t b = 0; b < shape.batches; ++b) {
    seen.forget();
    batch.clear();
    for (std::uint32_t i = 0; i < shape.batch; ++i, ++next_seed) {
      const Key seed = seeds[next_seed % seeds.size()];
      if (seen.first(seed)) batch.push_back(seed);
    }
    std::size_t hop_begin = 0;
    for (const std::uint32_t neighbours : fan_out) {
      const std::size_t hop_end = batch.size();
      for (std::size_t n = hop_begin; n < hop_end; ++n)
        for (std::uint32_t i = 0; i < (graph.degree(batch[n]) > 0 ? neighbours : 0); ++i) {
          const Key key = graph.of(batch[n], random.below(graph.degree(batch[n])));
          if (seen.first(key)) batch.push_back(key);
        }
      hop_begin = hop_end;
    }
    for (const Key key : batch)
      if (!is_mine(key)) stream.accesses.push_back(key);
    REHEARSE_CHECK(stream.accesses.size() <= kMostAccesses);
    stream.ends.push_back(static_cast<std::uint32_t>(stream.accesses.size()));
  }
  return stream;
}

}  // namespace rehearse::store
