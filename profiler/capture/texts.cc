#include "profiler/capture/texts.h"

#include <algorithm>

#include "profiler/capture/system.h"

namespace rehearse::capture {
namespace {

constexpr std::uint32_t kTextSlots = 1 << 16;
constexpr std::uint32_t kMaxPassing = kTextSlots / 2;
constexpr std::uint32_t kMaxLasting = kTextSlots / 8 * 7;
constexpr std::size_t kArenaBytes = 32u << 20;
constexpr std::size_t kPassingBytes = 24u << 20;

// Open addressing; slots fill and never empty.
std::atomic<Text*> slots[kTextSlots];
// A text is counted before it is visible in its slot, so that every reader of a text sees it
// counted.
std::atomic<std::uint32_t> texts_begun;
std::atomic<std::uint32_t> abandoned;
std::atomic<std::uint32_t> last_number;

std::atomic<char*> arena;
std::atomic<std::size_t> arena_used;

char* arena_begin() {
  char* begin = arena.load(std::memory_order_acquire);
  if (begin) return begin;
  auto* fresh = static_cast<char*>(reserve_memory(kArenaBytes));
  if (!fresh) return nullptr;
  if (arena.compare_exchange_strong(begin, fresh, std::memory_order_acq_rel)) return fresh;
  ::munmap(fresh, kArenaBytes);
  return begin;
}

void* allocate(std::size_t bytes, std::size_t limit) {
  char* begin = arena_begin();
  if (!begin) return nullptr;
  bytes = (bytes + 7) & ~std::size_t{7};
  std::size_t used = arena_used.load(std::memory_order_relaxed);
  do {
    if (used + bytes > limit) return nullptr;
  } while (!arena_used.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return begin + used;
}

/// Eight bytes at a time: multiply, and fold the high half onto the low one.
std::uint64_t hash_of(std::string_view content) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;
  std::uint64_t hash = content.size() * kOdd;
  const auto mix = [&](std::uint64_t word) {
    hash = (hash ^ word) * kOdd;
    hash ^= hash >> 32;
  };
  const char* at = content.data();
  std::size_t left = content.size();
  std::uint64_t word = 0;
  for (; left >= 8; left -= 8, at += 8) {
    std::memcpy(&word, at, 8);
    mix(word);
  }
  word = 0;
  std::memcpy(&word, at, left);
  mix(word);
  return hash;
}

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

void say(std::initializer_list<std::string_view> parts) {
  char line[1024];
  std::size_t n = 0;
  const auto add = [&](std::string_view part) {
    const std::size_t fits = std::min(part.size(), sizeof line - 1 - n);
    std::memcpy(line + n, part.data(), fits);
    n += fits;
  };
  add("rehearse: ");
  for (const std::string_view part : parts) add(part);
  line[n++] = '\n';
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, line, n);
}

const Text* intern(std::string_view content, bool lasting) {
  const std::uint64_t hash = hash_of(content);
  Text* fresh = nullptr;
  for (std::uint32_t i = static_cast<std::uint32_t>(hash) % kTextSlots;; i = (i + 1) % kTextSlots) {
    Text* found = slots[i].load(std::memory_order_acquire);
    if (!found) {
      if (!fresh) {
        if (texts_begun.load(std::memory_order_relaxed) >= (lasting ? kMaxLasting : kMaxPassing))
          return nullptr;
        fresh = static_cast<Text*>(
            allocate(sizeof(Text) + content.size(), lasting ? kArenaBytes : kPassingBytes));
        if (!fresh) return nullptr;
        fresh->hash = hash;
        fresh->number = new_text_number();
        fresh->bytes = static_cast<std::uint32_t>(content.size());
        fresh->step = StepText::of(content);
        std::memcpy(fresh + 1, content.data(), content.size());
        texts_begun.fetch_add(1, std::memory_order_relaxed);
      }
      if (slots[i].compare_exchange_strong(found, fresh, std::memory_order_acq_rel)) return fresh;
    }
    if (found->hash == hash && found->view() == content) {
      if (fresh) abandoned.fetch_add(1, std::memory_order_relaxed);
      return found;
    }
  }
}

std::uint32_t new_text_number() { return last_number.fetch_add(1, std::memory_order_relaxed) + 1; }

const Text* as_text(const void* handle) {
  const char* begin = arena.load(std::memory_order_acquire);
  const auto* at = static_cast<const char*>(handle);
  if (!begin || at < begin || at >= begin + kArenaBytes) return nullptr;
  return static_cast<const Text*>(handle);
}

std::string_view clip(const char* content) {
  if (!content) return {};
  std::size_t n = ::strnlen(content, kMaxTextBytes + 1);
  if (n > kMaxTextBytes) {
    n = kMaxTextBytes;
    while (n > 0 && is_continuation(content[n])) --n;
  }
  return {content, n};
}

std::string_view narrow(const wchar_t* content, char (&into)[kMaxTextBytes]) {
  std::size_t n = 0;
  for (; content && *content; ++content) {
    auto code = static_cast<std::uint32_t>(*content);
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) code = 0xFFFD;
    const std::size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (n + length > kMaxTextBytes) break;
    static constexpr unsigned char kLead[] = {0, 0x00, 0xC0, 0xE0, 0xF0};
    for (std::size_t i = length - 1; i > 0; --i, code >>= 6)
      into[n + i] = static_cast<char>(0x80 | (code & 0x3F));
    into[n] = static_cast<char>(kLead[length] | code);
    n += length;
  }
  return {into, n};
}

bool UnwrittenTexts::rewind() {
  slot_ = 0;
  // In this order: a text begun in between must not look like one that was abandoned before.
  const std::uint32_t settled = abandoned.load(std::memory_order_acquire) + written_;
  return texts_begun.load(std::memory_order_acquire) != settled;
}

Text* UnwrittenTexts::next(std::uint32_t last) {
  for (; slot_ < kTextSlots; ++slot_) {
    Text* text = slots[slot_].load(std::memory_order_acquire);
    if (text && text->written_in != recording_ && text->number <= last) {
      ++slot_;
      return text;
    }
  }
  return nullptr;
}

void* lasting_memory(std::size_t bytes) { return allocate(bytes, kArenaBytes); }

}  // namespace rehearse::capture
