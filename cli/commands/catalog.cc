// rehearse catalog: the shipped facts, with source and date.
#include <fmt/core.h>

#include "cli/catalog/listing.h"
#include "cli/commands/catalog_names.h"
#include "cli/commands/options.h"
#include "sim/base/check.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct CatalogOptions {
  std::string kind;
  Filters filters;
};

Kind kind_named(std::string_view name) {
  for (Kind& kind : catalog_kinds())
    if (kind.name == name) return std::move(kind);
  REHEARSE_CHECK(false, "no kind {}", name);
}

Result<Exit> run(const CatalogOptions& options, const Globals& globals) {
  const auto list = TRY(list_kind(kind_named(options.kind), options.filters));
  return answer_with(globals, list);
}

}  // namespace

void add_catalog(CLI::App& app, Action& action) {
  auto options = std::make_shared<CatalogOptions>();
  CLI::App& command = *app.add_subcommand(
      "catalog",
      "List built-in facts with their sources: GPUs, instances, links, models, prices, carbon");
  std::vector<std::string_view> kinds;
  for (const Kind& kind : catalog_kinds()) kinds.push_back(kind.name);
  CLI::Option* named =
      add_value(command, "KIND", "NAME", options->kind,
                "gpus, instances, links, mig, models, storage, prices, carbon, pue, power, "
                "storage-prices, functions, or sources");
  offer(named->check(reads_as([kinds](const std::string& name) -> Status {
    if (std::ranges::find(kinds, name) != kinds.end()) return {};
    return fail(fmt::format("unknown kind '{}'", name), {}, suggest(name, kinds));
  })),
        [kinds] { return kinds; })
      ->required();
  Filters& filters = options->filters;
  add_value(command, "--name", "PATTERN", filters.name,
            "rows with this name; * matches any text, also below");
  offer(add_value(command, "--provider", "PATTERN", filters.provider,
                  "rows of this provider: aws, azure, gcp, ..."),
        provider_names);
  offer(add_value(command, "--gpu", "PATTERN", filters.gpu,
                  "instances, prices and MIG profiles of this GPU"),
        gpu_names);
  offer(add_value(command, "--region", "PATTERN", filters.region,
                  "prices and carbon of this region or country"),
        region_names);
  command.footer("Example: rehearse catalog prices --gpu 'h100*' --region 'us-*'");
  run_by(command, action, options, run, [&command](const CatalogOptions& given) {
    const Kind kind = kind_named(given.kind);
    std::vector<std::string> given_in_vain, known;
    for (const char* filter : {"--name", "--provider", "--gpu", "--region"})
      if (kind.filter(filter) != nullptr)
        known.emplace_back(filter);
      else if (command.count(filter) > 0)
        given_in_vain.emplace_back(filter);
    if (!given_in_vain.empty())
      wrong_usage(fmt::format("{} does not apply to {}; use {}", given_in_vain.front(), kind.name,
                              join(known, ", ")));
  });
}

}  // namespace rehearse::cli
