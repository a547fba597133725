#include "profiler/ingest/input.h"
#include "profiler/ingest/kineto.h"
#include "profiler/trace/align.h"
#include "profiler/trace/store.h"
namespace rehearse::ingest {
Result<trace::Trace> read_inputs(std::span<const std::filesystem::path> paths, const ReadOptions& o) {
  trace::Trace t; t.ranks.resize(paths.size());
  for (size_t k=0;k<paths.size();k++){ auto s=open_bytes(paths[k]); if(!s) return forward(s); t.ranks[k].info.source=paths[k].filename(); trace::RankRows rows(t.ranks[k]); trace::Recorder rec(t.names,t.problems,t.ranks[k],rows); auto ok=read_kineto(**s,rec,o.progress); if(!ok) return forward(ok); if(!t.ranks[k].info.rank) t.ranks[k].info.rank=k; }
  trace::align(t); return t; }
Result<InputKind> detect_input(const std::filesystem::path& p) { auto n=p.string(); if(n.find("_et")!=n.npos||n.find("/et/")!=n.npos||n.find("execgraph")!=n.npos||n.find("galvatron")!=n.npos||n.find("chakra")!=n.npos) return InputKind::kExecutionTrace; return InputKind::kKineto; }
Result<ImportSummary> import_inputs(std::span<const std::filesystem::path> paths, const std::filesystem::path& store, const ReadOptions& o) { auto t=read_inputs(paths,o); if(!t) return forward(t); auto w=trace::StoreWriter::create(store); if(!w) return forward(w); for(size_t k=0;k<t->ranks.size();k++){ auto&r=w->rows(k); for(auto&x:t->ranks[k].host_ops) r.add(x); for(auto&x:t->ranks[k].gpu_ops) r.add(x); } auto s=w->finish(*t); if(!s) return forward(s); return ImportSummary{t->ranks.size()}; }
}
