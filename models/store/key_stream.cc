#include "models/store/key_stream.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include <fmt/core.h>

#include "models/store/seen.h"
#include "models/store/zipf.h"
#include "sim/base/check.h"
#include "sim/base/random.h"
#include "sim/base/text.h"

namespace rehearse::store {
namespace {

void check_size(std::uint64_t accesses) {
  REHEARSE_CHECK(accesses <= kMostAccesses, "{} accesses", accesses);
}

void end_batch(KeyStream& stream) {
  check_size(stream.accesses.size());
  stream.ends.push_back(static_cast<std::uint32_t>(stream.accesses.size()));
}

/// Batches of the keys that `next` gives one after another.
template <class Next>
KeyStream batches_of(const Shape& shape, Next next) {
  const std::uint64_t accesses = std::uint64_t{shape.batch} * shape.batches;
  check_size(accesses);
  KeyStream stream{.keys = shape.keys};
  stream.accesses.reserve(accesses);
  for (std::uint32_t b = 0; b < shape.batches; ++b) {
    for (std::uint32_t i = 0; i < shape.batch; ++i) stream.accesses.push_back(next());
    end_batch(stream);
  }
  return stream;
}

KeyStream draw_zipf(const Shape& shape, double exponent) {
  const Zipf zipf(shape.keys, exponent);
  Random random(mixed(shape.seed));
  return batches_of(shape, [&] { return zipf.draw(random); });
}

}  // namespace

KeyStream zipf_stream(const Shape& shape, double exponent) {
  // A study asks for the same draws in several caches, and again at its next points.
  struct Drawn {
    Shape shape;
    double exponent;
    KeyStream stream;
  };
  constexpr std::size_t kKept = 2, kMostKept = 16'000'000;
  thread_local std::vector<Drawn> drawn;  // the latest last
  const auto found = std::find_if(drawn.begin(), drawn.end(), [&](const Drawn& one) {
    return one.shape == shape && one.exponent == exponent;
  });
  if (found != drawn.end()) {
    std::rotate(found, found + 1, drawn.end());
    return drawn.back().stream;
  }
  KeyStream stream = draw_zipf(shape, exponent);
  if (stream.accesses.size() > kMostKept) return stream;
  if (drawn.size() == kKept) drawn.erase(drawn.begin());
  drawn.push_back({shape, exponent, stream});
  return stream;
}

KeyStream epoch_permutations(const Shape& shape) {
  check_size(std::uint64_t{shape.keys} * shape.batches);
  KeyStream stream{.keys = shape.keys};
  stream.accesses.reserve(std::size_t{shape.keys} * shape.batches);
  Random random(mixed(shape.seed));
  for (std::uint32_t epoch = 0; epoch < shape.batches; ++epoch) {
    std::uint32_t in_batch = 0;
    for (const Key key : shuffled(shape.keys, random)) {
      stream.accesses.push_back(key);
      if (++in_batch == shape.batch) end_batch(stream), in_batch = 0;
    }
    if (in_batch > 0) end_batch(stream);
  }
  return stream;
}

KeyStream sequential(const Shape& shape, std::int32_t stride) {
  const std::int64_t keys = shape.keys;
  std::int64_t key = stride < 0 ? keys - 1 : 0;
  return batches_of(shape, [&] {
    return static_cast<Key>(std::exchange(key, ((key + stride) % keys + keys) % keys));
  });
}

KeyStream runs(const Shape& shape, std::uint32_t run, bool backward) {
  REHEARSE_CHECK(run >= 1 && run <= shape.keys, "{} of {}", run, shape.keys);
  Random random(mixed(shape.seed));
  Key first = 0;
  std::uint32_t left = 0;
  return batches_of(shape, [&] {
    if (left == 0) first = random.below(shape.keys - run + 1), left = run;
    --left;
    return backward ? first + left : first + (run - 1 - left);
  });
}

KeyStream in_turn(std::span<const KeyStream> streams) {
  KeyStream all{.keys = streams.front().keys};
  for (const KeyStream& stream : streams) {
    REHEARSE_CHECK(stream.keys == all.keys, "{} and {} keys", stream.keys, all.keys);
    check_size(all.accesses.size() + stream.accesses.size());
    const auto before = static_cast<std::uint32_t>(all.accesses.size());
    all.accesses.insert(all.accesses.end(), stream.accesses.begin(), stream.accesses.end());
    for (const std::uint32_t end : stream.ends) all.ends.push_back(before + end);
  }
  return all;
}

KeyStream reordered(const KeyStream& epochs, std::uint32_t window) {
  const std::size_t keys = epochs.keys, count = epochs.accesses.size() / keys;
  const std::size_t seen = std::min<std::size_t>(window, keys);
  KeyStream stream{.keys = epochs.keys, .ends = epochs.ends};
  std::vector<char> taken(count, 0);
  std::vector<std::size_t> ended_with(keys, count);  // the epoch that a key is one of the last of
  for (std::size_t next = 0; next < count;) {
    const Key* const from = epochs.accesses.data() + next * keys;
    stream.accesses.insert(stream.accesses.end(), from, from + keys);
    taken[next] = 1;
    for (const Key* key = from + (keys - seen); key != from + keys; ++key) ended_with[*key] = next;
    const std::size_t before = std::exchange(next, count);
    std::size_t most = 0;
    for (std::size_t e = 0; e < count; ++e) {
      if (taken[e]) continue;
      const Key* const begin = epochs.accesses.data() + e * keys;
      const auto common = static_cast<std::size_t>(
          std::count_if(begin, begin + seen, [&](Key key) { return ended_with[key] == before; }));
      if (next == count || common > most) next = e, most = common;
    }
  }
  return stream;
}

Result<KeyStream> recorded_keys(std::string_view text, const std::string& name) {
  KeyStream stream;
  std::unordered_map<std::uint64_t, Key> number;
  std::uint32_t line_number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++line_number;
    const std::size_t before = stream.accesses.size();
    for (const std::string_view padded : split(line, ' ')) {
      const std::string_view word = trim(padded);
      if (word.empty()) continue;
      std::uint64_t key = 0;
      const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), key);
      if (error != std::errc{} || rest != word.data() + word.size())
        return fail(Diagnostic{.file = name,
                               .line = line_number,
                               .problem = fmt::format("'{}' is not a key", word),
                               .expected = "whole numbers between spaces, a batch on each line"});
      const auto [at, fresh] = number.try_emplace(key, static_cast<Key>(number.size()));
      stream.accesses.push_back(at->second);
      if (stream.accesses.size() > kMostAccesses)
        return fail(Diagnostic{.file = name, .line = line_number, .problem = "too many accesses"});
    }
    if (stream.accesses.size() > before) end_batch(stream);
  }
  if (stream.accesses.empty()) return fail_in(name, "holds no keys", "one at least");
  stream.keys = static_cast<std::uint32_t>(number.size());
  return stream;
}

KeyStream unique_in_batches(const KeyStream& stream) {
  KeyStream unique{.keys = stream.keys};
  Seen seen(stream.keys);
  for (std::size_t b = 0; b < stream.batches(); ++b) {
    seen.forget();
    for (const Key key : stream.batch(b))
      if (seen.first(key)) unique.accesses.push_back(key);
    end_batch(unique);
  }
  return unique;
}

KeyStream scattered(const KeyStream& stream, std::uint64_t seed) {
  Random random(mixed(seed));
  const std::vector<Key> name = shuffled(stream.keys, random);
  KeyStream renamed = stream;
  for (Key& key : renamed.accesses) key = name[key];
  return renamed;
}

Result<KeyStream> pages_of(const KeyStream& items, Bytes item, Bytes page) {
  constexpr double kLargest = 1 << 30;
  if (!(item.b() >= 1 && item.b() <= kLargest) || !(page.b() >= 1 && page.b() <= kLargest))
    return fail(fmt::format("items of {} on pages of {}", to_string(item), to_string(page)),
                "1 B to 1 GiB each");
  // In whole bytes: whether an item just reaches a page must not depend on rounding.
  const auto item_bytes = static_cast<std::uint64_t>(item.b());
  const auto page_bytes = static_cast<std::uint64_t>(page.b());
  const std::uint64_t pages = (items.keys * item_bytes + page_bytes - 1) / page_bytes;
  const std::uint64_t most_per_item = (item_bytes + page_bytes - 2) / page_bytes + 1;
  if (pages > kMostAccesses || items.accesses.size() > kMostAccesses / most_per_item)
    return fail(fmt::format("{} pages, and up to {} of them at each of {} accesses", pages,
                            most_per_item, items.accesses.size()),
                "fewer than 2^32 of both in total", "larger pages, or fewer keys and accesses");
  KeyStream stream{.keys = static_cast<std::uint32_t>(pages)};
  stream.accesses.reserve(items.accesses.size());
  for (std::size_t b = 0; b < items.batches(); ++b) {
    for (const Key key : items.batch(b)) {
      const std::uint64_t last = ((std::uint64_t{key} + 1) * item_bytes - 1) / page_bytes;
      for (std::uint64_t p = key * item_bytes / page_bytes; p <= last; ++p)
        stream.accesses.push_back(static_cast<Key>(p));
    }
    end_batch(stream);
  }
  return stream;
}

}  // namespace rehearse::store
