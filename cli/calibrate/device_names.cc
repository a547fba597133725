#include "cli/calibrate/device_names.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include <fmt/core.h>

namespace rehearse::cli {
namespace {

/// Lower-case runs of letters and digits; "80GB" is "80".
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  for (std::string& w : words) {
    // "8xV100" counts them.
    const std::size_t x = w.find('x');
    if (x != std::string::npos && x > 0 && x + 1 < w.size() &&
        w.find_first_not_of("0123456789") == x)
      w.erase(0, x + 1);
    if (w.size() > 2 && w.ends_with("gb") && std::isdigit(static_cast<unsigned char>(w[0])))
      w.resize(w.size() - 2);
  }
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& w : words) all += w;
  return all;
}

bool is_number(std::string_view w) {
  return !w.empty() && w.size() < 10 &&
         std::ranges::all_of(w, [](char c) { return c >= '0' && c <= '9'; });
}

/// Whether a word distinguishes variants of a model.
bool is_variant(const std::string& w) {
  return w.starts_with("sxm") || w == "pcie" || w == "nvl" || w == "gcd" || w == "server" ||
         (is_number(w) && std::stoi(w) < 1000);
}

/// The words of a catalog name up to the first that distinguishes variants.
std::string model_of(const std::vector<std::string>& words) {
  std::string model;
  for (const std::string& w : words) {
    if (!model.empty() && is_variant(w)) break;
    model += w;
  }
  return model;
}

/// A variant word of the catalog that the table's name has, is silent on, or contradicts.
int agreement(const std::string& word, const std::vector<std::string>& name) {
  const auto has = [&](auto&& test) { return std::ranges::any_of(name, test); };
  if (is_number(word)) {
    if (has([&](const std::string& w) { return w == word; })) return 2;
    return has([](const std::string& w) { return is_number(w) && std::stoi(w) >= 8; }) ? -2 : 0;
  }
  const bool pcie = has([](const std::string& w) { return w == "pcie"; });
  const bool sxm =
      has([](const std::string& w) { return w.starts_with("sxm") || w == "hbm3" || w == "dgx"; });
  if (word == "pcie") return pcie ? 2 : sxm ? -2 : 0;
  if (word.starts_with("sxm")) return sxm ? 2 : pcie ? -2 : 1;
  return has([&](const std::string& w) { return w == word; }) ? 2 : -1;
}

}  // namespace

Result<const cluster::Gpu*> device_named(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  const std::string all = joined(words);
  const cluster::Gpu* best = nullptr;
  std::size_t length = 0;
  int agreed = 0;
  for (const cluster::Gpu& gpu : cluster::gpus()) {
    const std::vector<std::string> id = words_of(gpu.name);
    const std::string model = model_of(id);
    // "l4" is not in "l40s": the text after a model in the name must begin another word.
    bool found = false;
    for (std::size_t first = 0; first < words.size() && !found; ++first) {
      std::string run;
      for (std::size_t last = first; last < words.size() && run.size() < model.size(); ++last) {
        run += words[last];
        if (run == model || "gtx" + run == model) found = true;
      }
    }
    if (!found || model.size() < length) continue;
    int score = 0;
    for (const std::string& w : id)
      if (is_variant(w)) score += agreement(w, words);
    if (model.size() > length || score > agreed) {
      best = &gpu;
      length = model.size();
      agreed = score;
    }
  }
  if (!best)
    return fail(fmt::format("'{}' is not a device of the catalog", name),
                "a name such as 'NVIDIA A100-SXM4-80GB'");
  return best;
}

}  // namespace rehearse::cli
