#include "profiler/ingest/rank_number.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "profiler/ingest/numbers.h"

namespace rehearse::ingest {
namespace {

constexpr std::string_view kDigits = "0123456789";

std::optional<std::uint32_t> leading_number(std::string_view text) {
  return parse_id(text.substr(0, text.find_first_not_of(kDigits)));
}

}  // namespace

std::optional<std::uint32_t> number_behind_rank(std::string_view name) {
  std::string word(name);
  std::ranges::transform(word, word.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::size_t at = word.rfind("rank");
  if (at == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(word).substr(at + 4);
  if (!rest.empty() && std::string_view(" _-:=.").find(rest.front()) != std::string_view::npos)
    rest.remove_prefix(1);
  return leading_number(rest);
}

std::optional<std::uint32_t> number_in_file_name(const std::filesystem::path& file) {
  constexpr std::array<std::string_view, 6> kExtensions = {".gz",    ".json", ".et",
                                                           ".trace", ".pt",   ".sqlite"};
  const std::string name = file.filename().string();
  std::string_view stem = name;
  const auto ends = [&](std::string_view extension) { return stem.ends_with(extension); };
  for (auto e = std::ranges::find_if(kExtensions, ends); e != kExtensions.end();
       e = std::ranges::find_if(kExtensions, ends))
    stem.remove_suffix(e->size());
  if (const auto behind_rank = number_behind_rank(stem)) return behind_rank;
  const std::size_t last = stem.find_last_not_of(kDigits);
  if (last == std::string_view::npos) return parse_id(stem);
  if (const auto trailing = parse_id(stem.substr(last + 1))) return trailing;
  return leading_number(stem);
}

std::optional<std::uint32_t> number_before_extension(const std::filesystem::path& file) {
  std::filesystem::path name = file.filename();
  if (name.extension() == ".gz") name = name.stem();
  const std::string number = name.stem().extension().string();
  return number.starts_with('.') ? parse_id(number.substr(1)) : std::nullopt;
}

}  // namespace rehearse::ingest
