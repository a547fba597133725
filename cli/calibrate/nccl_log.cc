#include "cli/calibrate/nccl_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "profiler/ingest/numbers.h"
#include "sim/base/file.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct Test {
  std::string_view name;
  CollectiveKind kind;
};
// Longer names first: "reduce" is in "all_reduce" and "reduce_scatter".
constexpr std::array<Test, 9> kTests = {{{"all_reduce", CollectiveKind::kAllReduce},
                                         {"reduce_scatter", CollectiveKind::kReduceScatter},
                                         {"all_gather", CollectiveKind::kAllGather},
                                         {"alltoall", CollectiveKind::kAllToAll},
                                         {"all_to_all", CollectiveKind::kAllToAll},
                                         {"broadcast", CollectiveKind::kBroadcast},
                                         {"sendrecv", CollectiveKind::kSendRecv},
                                         {"send_recv", CollectiveKind::kSendRecv},
                                         {"reduce", CollectiveKind::kReduce}}};

std::optional<CollectiveKind> kind_in(std::string_view text) {
  for (const Test& test : kTests)
    if (text.find(test.name) != std::string_view::npos) return test.kind;
  return std::nullopt;
}

/// The folders of a path say nothing.
std::string_view file_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::string_view part : split(line, ' '))
    if (part = trim(part); !part.empty()) words.push_back(part);
  return words;
}

/// 22902 is 2.29.2; before 2.9 it was 2804 for 2.8.4.
std::string version_of(std::uint64_t code) {
  if (code < 10000) return fmt::format("{}.{}.{}", code / 1000, code / 100 % 10, code % 100);
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

class TextReader {
 public:
  explicit TextReader(const std::string& name) : name_(name), kind_(kind_in(file_of(name))) {}

  Result<std::vector<NcclRun>> read(const std::string& text) {
    for (const std::string_view line : split(text, '\n')) {
      ++line_;
      const std::string_view body = trim(line);
      if (body.starts_with('#'))
        comment(body);
      else if (!body.empty() && std::isdigit(static_cast<unsigned char>(body.front())))
        TRY(row(body));
    }
    if (runs_.empty())
      return fail_in(
          name_, "has no results of nccl-tests",
          "the output of all_reduce_perf or another of its programs, as text or from -J");
    return std::move(runs_);
  }

 private:
  Diagnostic at(std::string problem, std::string expected) const {
    return {.file = name_,
            .line = line_,
            .problem = std::move(problem),
            .expected = std::move(expected)};
  }

  void comment(std::string_view line) {
    const std::vector<std::string_view> words = words_of(line.substr(1));
    if (words.empty()) return;
    const auto has = [&](std::string_view text) {
      return line.find(text) != std::string_view::npos;
    };
    if (has("Collective test starting")) {
      if (const auto kind = kind_in(words.back())) kind_ = kind;
    } else if (has("Using devices")) {
      devices_ = 0;
      hosts_.clear();
      open_ = false;
    } else if (words.front() == "Rank" && words.size() > 6) {
      ++devices_;
      for (std::size_t i = 0; i + 1 < words.size(); ++i)
        if (words[i] == "on") hosts_.insert(std::string(words[i + 1]));
      if (const std::size_t end = line.find(']'); end != std::string_view::npos)
        device_ = trim(line.substr(end + 1));
    } else if (has("nccl-library=")) {
      const std::string_view code = line.substr(line.find("nccl-library=") + 13);
      std::uint64_t value = 0;
      std::from_chars(code.data(), code.data() + code.size(), value);
      if (value > 0) version_ = version_of(value);
    } else if (words.front() == "size") {
      headings_.assign(words.begin(), words.end());
    }
  }

  Status row(std::string_view line) {
    const std::vector<std::string_view> cells = words_of(line);
    const auto heading = std::ranges::find(headings_, "time");
    if (heading == headings_.end())
      return fail(at("results without a header line that has a 'time' column",
                     "the whole output of nccl-tests, with its lines that begin with #"));
    const auto time_at = static_cast<std::size_t>(heading - headings_.begin());
    if (!kind_)
      return fail(at("does not say which collective it measured",
                     "a file name with all_reduce, all_gather, reduce_scatter, alltoall, "
                     "broadcast, reduce or sendrecv"));
    if (devices_ < 2)
      return fail(at(fmt::format("results of {} ranks", devices_),
                     "the lines '# Rank …' of at least 2 ranks"));
    if (cells.size() <= time_at + 2)
      return fail(at(fmt::format("{} columns", cells.size()),
                     fmt::format("the {} of the header line", headings_.size())));
    const std::optional<double> size = ingest::parse_real(cells[0]),
                                time = ingest::parse_real(cells[time_at]);
    if (!size || *size < 0) return fail(at(fmt::format("size '{}'", cells[0]), "bytes"));
    if (!time || !(*time > 0))
      return fail(at(fmt::format("time '{}'", cells[time_at]), "microseconds above 0"));
    const std::size_t wrong_at = time_at + 3;
    if (wrong_at < cells.size() && cells[wrong_at] != "N/A") {
      const std::optional<double> wrong = ingest::parse_real(cells[wrong_at]);
      if (wrong && *wrong > 0)
        return fail(at(fmt::format("{} wrong results", cells[wrong_at]), "a run without errors"));
    }
    if (*size < 1) return {};  // nothing moved
    if (!open_ || runs_.back().kind != *kind_ || runs_.back().ranks != devices_) {
      runs_.push_back(
          {.kind = *kind_,
           .ranks = devices_,
           .nodes = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(hosts_.size())),
           .device = device_,
           .nccl_version = version_});
      open_ = true;
    }
    runs_.back().rows.push_back({*kind_, devices_, Bytes::b(*size), Seconds::us(*time)});
    return {};
  }

  const std::string& name_;
  std::optional<CollectiveKind> kind_;
  std::uint32_t line_ = 0;
  std::uint32_t devices_ = 0;
  std::set<std::string> hosts_;
  std::string device_, version_;
  std::vector<std::string> headings_;
  bool open_ = false;  // the devices above have a run already
  std::vector<NcclRun> runs_;
};

/// The line of a byte, for messages of the JSON reader.
std::uint32_t line_at(const std::string& text, std::size_t byte) {
  return 1 + static_cast<std::uint32_t>(std::count(
                 text.begin(),
                 text.begin() + static_cast<std::ptrdiff_t>(std::min(byte, text.size())), '\n'));
}

/// The value at a path such as "/config/devices"; null if there is none.
const OrderedJson* find(const OrderedJson& json, const std::string& path) {
  const OrderedJson::json_pointer at(path);
  return json.contains(at) ? &json.at(at) : nullptr;
}

std::string text_at(const OrderedJson& json, const std::string& path) {
  const OrderedJson* found = find(json, path);
  return found && found->is_string() ? found->get<std::string>() : "";
}

std::optional<double> number_at(const OrderedJson& json, const std::string& path) {
  const OrderedJson* found = find(json, path);
  return found && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

Result<std::vector<NcclRun>> parse_json(const std::string& text, const std::string& name) {
  const auto wrong = [&](std::string key, std::string problem, std::string expected) {
    return fail(Diagnostic{.file = name,
                           .line = 1,
                           .key = std::move(key),
                           .problem = std::move(problem),
                           .expected = std::move(expected)});
  };
  OrderedJson json;
  try {
    json = OrderedJson::parse(text);
  } catch (const OrderedJson::parse_error& e) {
    return fail(Diagnostic{.file = name,
                           .line = line_at(text, e.byte == 0 ? 0 : e.byte - 1),
                           .problem = "not valid JSON",
                           .expected = "the output of nccl-tests -J"});
  } catch (const OrderedJson::out_of_range&) {
    return fail_in(name, "contains a number that is out of range", "the output of nccl-tests -J");
  }
  const OrderedJson* results = find(json, "/results");
  if (!results || !results->is_array())
    return wrong("results", "is missing", "the output of nccl-tests -J");
  const OrderedJson* args = find(json, "/args");
  std::optional<CollectiveKind> kind = args ? kind_in(args->dump()) : std::nullopt;
  if (!kind) kind = kind_in(file_of(name));
  if (!kind)
    return wrong("args", "does not say which collective it measured",
                 "a file name with all_reduce, all_gather, reduce_scatter, alltoall, broadcast, "
                 "reduce or sendrecv");
  NcclRun run{.kind = *kind};
  std::set<std::string> hosts;
  if (const OrderedJson* devices = find(json, "/config/devices"); devices && devices->is_array())
    for (const OrderedJson& device : *devices) {
      if (!device.is_object()) continue;
      ++run.ranks;
      hosts.insert(text_at(device, "/hostname"));
      run.device = text_at(device, "/device_info");
    }
  // Without MPI, one entry represents all devices of the process.
  if (run.ranks == 1) {
    const auto whole = [&](const char* path) {
      const OrderedJson* found = find(json, path);
      return found && found->is_number_unsigned() ? found->get<std::uint64_t>() : 1;
    };
    run.ranks = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(whole("/config/nthreads") * whole("/config/ngpus"), 1U << 20));
  }
  if (run.ranks < 2)
    return wrong("config.devices", fmt::format("{} ranks", run.ranks), "at least 2");
  run.nodes = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(hosts.size()));
  run.nccl_version = text_at(json, "/nccl_version");
  if (const OrderedJson* code = find(json, "/nccl_version"); code && code->is_number_unsigned())
    run.nccl_version = version_of(code->get<std::uint64_t>());
  for (std::size_t i = 0; i < results->size(); ++i) {
    const OrderedJson& result = (*results)[i];
    const std::optional<double> size = number_at(result, "/size");
    if (!size) return wrong(fmt::format("results[{}].size", i), "is missing", "bytes");
    const OrderedJson* apart = find(result, "/out_of_place");
    const std::string place = apart && apart->is_object() ? "out_of_place" : "in_place";
    const std::string key = fmt::format("results[{}].{}", i, place);
    const std::optional<double> time = number_at(result, "/" + place + "/time");
    if (!time) return wrong(key + ".time", "is missing", "microseconds");
    if (!(*time > 0) || !std::isfinite(*time) || !(*size >= 0))
      return wrong(key + ".time", fmt::format("is {}", *time), "microseconds above 0");
    if (const auto bad = number_at(result, "/" + place + "/nwrong"); bad && *bad > 0)
      return wrong(key + ".nwrong", fmt::format("is {}", *bad), "a run without errors");
    if (*size >= 1) run.rows.push_back({run.kind, run.ranks, Bytes::b(*size), Seconds::us(*time)});
  }
  if (run.rows.empty()) return wrong("results", "is empty", "sizes above 0");
  return std::vector<NcclRun>{std::move(run)};
}

}  // namespace

Result<std::vector<NcclRun>> parse_nccl_log(const std::string& text, const std::string& name) {
  if (trim(std::string_view(text).substr(0, 4096)).starts_with('{')) return parse_json(text, name);
  return TextReader(name).read(text);
}

Result<std::vector<NcclRun>> read_nccl_log(const std::filesystem::path& path) {
  const std::string text = TRY(read_file(path));
  return parse_nccl_log(text, path.string());
}

}  // namespace rehearse::cli
