// mutants TARGET CORPUS COUNT [SEED]: runs a reader on mutants of its corpus, for where libFuzzer
// is not.
//
// The mutations are blind: nothing tells which inputs reach new code, so this finds what lies near
// the corpus. A mutant depends on its target, the seed and its number alone. An input that breaks
// the reader, or that takes it longer than ten seconds, is written to finding-TARGET.
#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sim/base/file.h"
#include "tests/fuzz/readers.h"

namespace rehearse::fuzz {
namespace {

using Random = std::mt19937_64;

constexpr unsigned kLongest = 10;            // seconds for one input
constexpr std::size_t kMaxBytes = 1 << 16;   // longer inputs say no more, and take longer
constexpr rlim_t kMemory = rlim_t{4} << 30;  // what no small input may make a reader ask for

// What the handler of signals needs, since it may neither allocate nor format.
std::string input;
std::string finding;
std::string report;

void write_finding() {
  const int file = ::open(finding.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const bool written =
      file >= 0 && ::write(file, input.data(), input.size()) == static_cast<ssize_t>(input.size());
  if (!written || ::write(STDERR_FILENO, report.data(), report.size()) < 0) ::_exit(2);
}

void on_signal(int) {
  write_finding();
  ::_exit(1);
}

std::size_t below(Random& random, std::size_t end) { return random() % end; }

/// A few changes of the kinds that damaged and hostile files have.
std::string mutant(const std::vector<std::string>& corpus, Random random) {
  constexpr std::array<std::string_view, 12> kTokens = {
      "0", "-1", "4294967296", "18446744073709551616", "1e999", "null", "\"", "\\u0000",
      "[", "{",  "}",          "\xff\xff\xff\xff"};
  std::string bytes = corpus[below(random, corpus.size())];
  for (std::size_t changes = 1 + below(random, 6); changes > 0; --changes) {
    const std::size_t at = below(random, bytes.size() + 1);
    const std::size_t length = std::min(1 + below(random, 64), bytes.size() - at);
    const std::string& other = corpus[below(random, corpus.size())];
    switch (below(random, 8)) {
      case 0:
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(random, 8)));
        break;
      case 1:
        if (at < bytes.size()) bytes[at] = static_cast<char>(random());
        break;
      case 2: bytes.erase(at, length); break;
      case 3: bytes.insert(at, bytes.substr(below(random, bytes.size() + 1), length)); break;
      case 4: bytes.insert(at, kTokens[below(random, kTokens.size())]); break;
      case 5: {  // a number becomes another
        const std::size_t digit = bytes.find_first_of("0123456789", at);
        if (digit == std::string::npos) break;
        const std::size_t end = bytes.find_first_not_of("0123456789", digit);
        bytes.replace(digit, std::min(end, bytes.size()) - digit,
                      kTokens[below(random, kTokens.size())]);
        break;
      }
      case 6: bytes = bytes.substr(0, at) + other.substr(below(random, other.size() + 1)); break;
      default:
        if (below(random, 8) == 0) bytes.resize(at);
        break;
    }
  }
  bytes.resize(std::min(bytes.size(), kMaxBytes));
  return bytes;
}

std::vector<std::string> read_corpus(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const auto& path : paths)
    if (Result<std::string> bytes = read_file(path)) corpus.push_back(std::move(*bytes));
  return corpus;
}

int run(const Target& target, const std::vector<std::string>& corpus, std::uint64_t count,
        std::uint64_t seed) {
  finding = fmt::format("finding-{}", target.name);
  for (std::uint64_t number = 0; number < count; ++number) {
    std::seed_seq place{seed, number};
    input = mutant(corpus, Random(place));
    report = fmt::format("{}: mutant {} of seed {} breaks the reader; it is in {}\n", target.name,
                         number, seed, finding);
    ::alarm(kLongest);
    try {
      target.run(input);
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
      write_finding();
      return 1;
    }
  }
  fmt::print("{}: {} mutants of seed {}\n", target.name, count, seed);
  return 0;
}

template <class Number>
bool parse(std::string_view text, Number& number) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && rest == text.data() + text.size();
}

}  // namespace
}  // namespace rehearse::fuzz

int main(int argc, char** argv) {
  using namespace rehearse::fuzz;
  std::uint64_t count = 0, seed = 1;
  if (argc < 4 || argc > 5 || !parse(argv[3], count) || (argc == 5 && !parse(argv[4], seed))) {
    fmt::print(stderr, "usage: mutants TARGET CORPUS COUNT [SEED]\n");
    return 2;
  }
  const std::vector<std::string> corpus = read_corpus(argv[2]);
  if (corpus.empty()) {
    fmt::print(stderr, "{} holds no inputs\n", argv[2]);
    return 2;
  }
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM})
    std::signal(signal, on_signal);
#ifndef __SANITIZE_ADDRESS__  // which reserves terabytes of addresses
  const rlimit memory{kMemory, kMemory};
  ::setrlimit(RLIMIT_AS, &memory);
#endif
  for (const Target& target : targets())
    if (target.name == argv[1]) return run(target, corpus, count, seed);
  fmt::print(stderr, "there is no target '{}'\n", argv[1]);
  return 2;
}
