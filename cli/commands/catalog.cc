// rehearse catalog: the shipped facts, with source and date.
#include <fmt/core.h>

#include "cli/catalog/listing.h"
#include "cli/commands/options.h"
#include "sim/base/check.h"
#include "sim/base/text.h"

namespace rehearse::cli {
namespace {

struct CatalogOptions {
  std::string kind;
  Filters filters;
};

std::vector<Kind> all_kinds() {
  std::vector<Kind> kinds = cluster_kinds();
  for (Kind& kind : cost_kinds()) kinds.push_back(std::move(kind));
  kinds.push_back(model_kind());
  return kinds;
}

Kind kind_named(std::string_view name) {
  for (Kind& kind : all_kinds())
    if (kind.name == name) return std::move(kind);
  REHEARSE_CHECK(false, "no kind {}", name);
}

Result<Exit> run(const CatalogOptions& options, const Globals& globals) {
  const Listing listing = TRY(kind_named(options.kind).list(options.filters));
  return answer_with(globals, listing_document(listing));
}

}  // namespace

void add_catalog(CLI::App& app, Action& action) {
  auto options = std::make_shared<CatalogOptions>();
  CLI::App& command = *app.add_subcommand(
      "catalog",
      "List built-in facts with their sources: GPUs, instances, links, models, prices, carbon");
  std::vector<std::string_view> kinds;
  for (const Kind& kind : all_kinds()) kinds.push_back(kind.name);
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
  add_value(command, "--provider", "PATTERN", filters.provider,
            "rows of this provider: aws, azure, gcp, ...");
  add_value(command, "--gpu", "PATTERN", filters.gpu,
            "instances, prices and MIG profiles of this GPU");
  add_value(command, "--region", "PATTERN", filters.region,
            "prices and carbon of this region or country");
  command.footer("Example: rehearse catalog prices --gpu 'h100*' --region 'us-*'");
  run_by(command, action, options, run, [&command](const CatalogOptions& given) {
    const Kind kind = kind_named(given.kind);
    for (const char* filter : {"--name", "--provider", "--gpu", "--region"})
      if (command.count(filter) > 0 &&
          std::ranges::find(kind.filters, filter) == kind.filters.end())
        wrong_usage(fmt::format("{} does not apply to {}; use {}", filter, kind.name,
                                join(kind.filters, ", ")));
  });
}

}  // namespace rehearse::cli
