// rehearse catalog: the shipped facts, with source and date.
#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cli/catalog/listing.h"
#include "cli/commands/commands.h"
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
  return kinds;
}

Result<Listing> list(const CatalogOptions& options) {
  std::vector<std::string_view> names;
  for (const Kind& kind : all_kinds()) {
    if (kind.name == options.kind) return kind.list(options.filters);
    names.push_back(kind.name);
  }
  return fail(fmt::format("unknown kind '{}'", options.kind), {}, suggest(options.kind, names));
}

Result<Exit> run(const Listing& listing, const Globals& globals) {
  if (Status ok = write_document(globals, listing_document(listing)); !ok) return forward(ok);
  return Exit::kSuccess;
}

}  // namespace

void add_catalog(CLI::App& app, Action& action) {
  auto options = std::make_shared<CatalogOptions>();
  CLI::App* command = app.add_subcommand(
      "catalog",
      "List built-in facts with source and date: GPUs, instances, links, prices, carbon");
  command
      ->add_option(
          "KIND", options->kind,
          "gpus, instances, links, mig, storage, prices, carbon, pue, power, storage-prices, "
          "functions, or sources")
      ->type_name("NAME")
      ->required();
  const auto add = [&](const char* option, std::string& pattern, const char* what) {
    command->add_option(option, pattern, what)->type_name("PATTERN");
  };
  add("--name", options->filters.name, "rows with this name; * matches any text, also below");
  add("--provider", options->filters.provider, "rows of this provider: aws, azure, gcp, ...");
  add("--gpu", options->filters.gpu, "instances, prices and MIG profiles of this GPU");
  add("--region", options->filters.region, "prices and carbon of this region or country");
  command->footer("Example: rehearse catalog prices --gpu 'h100*' --region 'us-*'");
  // An empty filter is wrong usage, so rows are chosen while the line is parsed.
  command->callback([options, &action] {
    Result<Listing> listing = list(*options);
    if (!listing)
      throw CLI::ValidationError(to_string(listing.error()), CLI::ExitCodes::ValidationError);
    action = [listing = std::move(*listing)](const Globals& globals) {
      return run(listing, globals);
    };
  });
}

}  // namespace rehearse::cli
