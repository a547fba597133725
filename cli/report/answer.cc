#include "cli/report/answer.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/output/table.h"
#include "cli/report/read_json.h"
#include "sim/base/text.h"
#include "sim/base/units.h"

namespace rehearse::cli {
namespace {

/// In the unit that suits people: trainings take days.
std::string time_text(double s) {
  if (s >= 2 * 86400.) return significant(s / 86400) + " days";
  if (s >= 2 * 3600.) return significant(s / 3600) + " h";
  if (s >= 120) return significant(s / 60) + " min";
  return to_string(Seconds::s(s));
}

std::string money_text(double usd) {
  if (usd >= 1e6) return significant(usd * 1e-6) + " M USD";
  if (usd >= 1e4) return significant(usd * 1e-3) + " k USD";
  if (usd >= 100) return significant(usd) + " USD";
  return to_string(Usd::usd(usd));
}

/// "1.94 s (1.86 s – 2.03 s)"; empty where the document has no such prediction.
template <class ToText>
std::string range_text(const Json& document, std::string_view key, ToText to_text,
                       std::string_view what = "") {
  const Json* quantity = at(document, key);
  if (quantity == nullptr) return "";
  const auto value = number_at(*quantity, "value"), low = number_at(*quantity, "low"),
             high = number_at(*quantity, "high");
  if (!value) return "";
  std::string text = to_text(*value) + std::string(what);
  if (low && high && (*low != *value || *high != *value)) {
    // One unit for both where it is the same.
    std::string from = to_text(*low);
    const std::string to = to_text(*high);
    const std::size_t unit = from.find(' ');
    if (unit != std::string::npos && to.find(' ') != std::string::npos &&
        from.substr(unit) == to.substr(to.find(' ')))
      from.resize(unit);
    text += fmt::format(" ({} – {})", from, to);
  }
  return text;
}

std::string join_parts(std::string head, const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts)
    if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
  if (text.empty()) return head;
  return head.empty() ? text : head + ": " + text;
}

std::string memory_part(const Json& document) {
  const auto peak = number_at(document, "memory_per_device.value");
  const auto usable = number_at(document, "memory_per_device.usable.value");
  if (!peak || !usable) return "";
  const std::string verdict = text_at(document, "memory_per_device.verdict");
  if (verdict == "fits")
    return fmt::format("fits with {} to spare", to_string(Bytes::b(*usable - *peak)));
  return fmt::format("{}: {} of {}", verdict.empty() ? "memory" : verdict,
                     to_string(Bytes::b(*peak)), to_string(Bytes::b(*usable)));
}

/// Of the parts of a step the one that takes most.
std::string largest_part(const Json& document) {
  const Json* breakdown = at(document, "breakdown");
  const auto* parts = breakdown ? std::get_if<Json::Object>(&breakdown->value()) : nullptr;
  if (parts == nullptr) return "";
  double total = 0, most = 0;
  std::string_view name;
  for (const auto& [key, part] : *parts) {
    const auto time = number_at(part, "value");
    if (key == "total" || !time) continue;
    total += *time;
    if (*time > most) {
      most = *time;
      name = key;
    }
  }
  if (!(total > 0)) return "";
  std::string shown(name);
  for (char& c : shown)
    if (c == '_') c = ' ';
  return fmt::format("{:.0f} % of the step is {}", most / total * 100, shown);
}

std::string target_part(const Json& document) {
  const std::string time = range_text(document, "to_target.time", time_text);
  if (time.empty()) return "";
  const std::string cost = range_text(document, "to_target.cost", money_text);
  return time + (cost.empty() ? "" : " and " + cost) + " to the target";
}

/// "16 × a100_sxm4_40 + 8 × h100_sxm5_80"
std::string devices_text(const Json& document) {
  std::string devices;
  for (const Json& use : list_at(document, "job.devices"))
    devices += fmt::format("{}{} × {}", devices.empty() ? "" : " + ",
                           grouped(static_cast<std::uint64_t>(number_at(use, "ranks").value_or(0))),
                           text_at(use, "device"));
  return devices;
}

/// "data 8, tensor 2, ZeRO-1, microbatch 4": of a plan what is not as if it were left out.
std::string plan_text(const Json& document) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (const char* split : {"data", "tensor", "pipeline", "context", "expert"})
    if (const auto n = number_at(document, fmt::format("plan.{}", split)); n && *n > 1)
      add(fmt::format("{} {}", split, *n));
  if (const auto zero = number_at(document, "plan.zero"); zero && *zero > 0)
    add(fmt::format("ZeRO-{}", *zero));
  if (const auto samples = number_at(document, "plan.microbatch"))
    add(fmt::format("microbatch {}", *samples));
  if (const std::string kept = text_at(document, "plan.recompute"); !kept.empty() && kept != "none")
    add(kept + " recomputation");
  return text;
}

std::string simulated(const Json& document) {
  const std::string input = text_at(document, "job.input");
  const double ranks = number_at(document, "job.ranks").value_or(0);
  std::string devices = devices_text(document);
  if (devices.empty()) devices = text_at(document, "cluster");
  const std::string head =
      input.empty() ? fmt::format("{} on {}", text_at(document, "job.workload"), devices)
                    : fmt::format("{}, {} on {}", input,
                                  counted(static_cast<std::uint64_t>(ranks), "rank"), devices);
  return join_parts(head, {range_text(document, "step_time", time_text, " a step"),
                           target_part(document), memory_part(document), largest_part(document)});
}

std::string replayed(const Json& document) {
  std::size_t steps = 0;
  for (const Json& rank : list_at(document, "ranks"))
    for (const Json& step : list_at(rank, "steps")) steps += is_true_at(step, "partial") ? 0 : 1;
  const auto measured = number_at(document, "step_time.measured.value");
  const auto error = number_at(document, "error.median");
  return join_parts(
      fmt::format("{}, {}", counted(list_at(document, "ranks").size(), "rank"),
                  counted(steps, "whole step")),
      {measured ? time_text(*measured) + " a step as measured" : "",
       range_text(document, "step_time.simulated", time_text, " as simulated"),
       error ? fmt::format("median error {:.2f} %", *error * 100) : "", largest_part(document)});
}

std::string edited(const Json& document) {
  const auto change = number_at(document, "change");
  const std::string baseline = range_text(document, "baseline.simulated", time_text);
  return join_parts(
      change ? fmt::format("The edit changes the step by {}", signed_percent(*change)) : "",
      {range_text(document, "step_time", time_text, " a step"),
       baseline.empty() ? "" : "without it " + baseline, largest_part(document)});
}

std::string planned(const Json& document) {
  const Json::Array& best = list_at(document, "best");
  const auto seen = number_at(document, "candidates_seen");
  const std::string plans =
      seen ? fmt::format("{} plans seen", grouped(static_cast<std::uint64_t>(*seen))) : "";
  const std::string workload = text_at(document, "job.workload");
  if (best.empty()) return join_parts(workload, {plans, "none fits"});
  const std::string plan = plan_text(best.front());
  const std::string head = fmt::format("{} on {}{}{}", workload, devices_text(best.front()),
                                       plan.empty() ? "" : ", ", plan);
  return join_parts(
      head, {range_text(best.front(), "step_time", time_text, " a step"), memory_part(best.front()),
             largest_part(best.front()), "best of " + plans});
}

std::string recommended(const Json& document) {
  const Json::Array& options = list_at(document, "options");
  if (options.empty()) return "No instance meets the target";
  const Json& best = options.front();
  const auto count = number_at(best, "count");
  const std::string plan = plan_text(best);
  return join_parts(
      fmt::format("{} on {}{}{}{}", text_at(document, "job.workload"),
                  count ? fmt::format("{} × ", grouped(static_cast<std::uint64_t>(*count))) : "",
                  text_at(best, "instance"), plan.empty() ? "" : ", ", plan),
      {range_text(best, "time_to_target", time_text, " to the target"),
       range_text(best, "cost_to_target", money_text),
       fmt::format("first of {}", counted(options.size(), "option"))});
}

std::string checked(const Json& document) {
  const auto change = number_at(document, "step_time.change");
  const auto change_value = change ? change : number_at(document, "step_time.change.value");
  std::string ops, runs, recordings;
  if (at(document, "ops") != nullptr) {
    std::size_t changed = 0;
    for (const Json& op : list_at(document, "ops")) changed += is_true_at(op, "significant");
    ops = fmt::format("{} changed significantly", counted(changed, "op"));
  }
  if (at(document, "history") != nullptr)
    runs = fmt::format("{} in {}", counted(list_at(document, "history.runs").size(), "run"),
                       counted(list_at(document, "history.segments").size(), "segment"));
  if (at(document, "predictions") != nullptr)
    recordings =
        fmt::format("{} predicted", counted(list_at(document, "predictions").size(), "recording"));
  return join_parts(fmt::format("Verdict: {}", text_at(document, "verdict")),
                    {change_value ? fmt::format("step time {}", signed_percent(*change_value)) : "",
                     ops, runs, recordings});
}

/// Of an input pipeline.
std::string fed(const Json& document) {
  const auto rate = [](double per_s) { return significant(per_s, 4) + " samples/s"; };
  const auto stall = number_at(document, "stall");
  return join_parts(
      range_text(document, "rate", rate),
      {"bounded by " + text_at(document, "bottleneck"),
       stall ? fmt::format("the accelerator waits for input {:.0f} % of its time", *stall * 100)
             : ""});
}

/// Of jobs on the same devices.
std::string shared(const Json& document) {
  std::vector<std::string> parts;
  for (const Json& tenant : list_at(document, "tenants"))
    if (const auto slowdown = number_at(tenant, "slowdown.value"))
      parts.push_back(fmt::format("{} takes {} times as long as alone, {}", text_at(tenant, "name"),
                                  significant(*slowdown),
                                  range_text(tenant, "beside", time_text, " a step")));
  return join_parts("Together", parts);
}

std::string sentence_of(const Json& document) {
  if (!list_at(document, "tenants").empty()) return shared(document);
  const std::string command = text_at(document, "command");
  if (command == "simulate") return simulated(document);
  if (command == "replay") return replayed(document);
  if (command == "whatif") return edited(document);
  if (command == "plan") return planned(document);
  if (command == "recommend") return recommended(document);
  if (command == "check") return checked(document);
  if (command == "input") return fed(document);
  return "";
}

}  // namespace

std::string answer_of(const Json& document) { return printable(sentence_of(document)); }

}  // namespace rehearse::cli
