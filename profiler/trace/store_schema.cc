#include "profiler/trace/store_schema.h"

namespace rehearse::trace {

const char* const kSchema = R"sql(
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE rank(id INTEGER PRIMARY KEY, rank INTEGER, world_size INTEGER, source TEXT NOT NULL,
  format TEXT NOT NULL, host TEXT NOT NULL, clock_base_ns INTEGER NOT NULL, timed INTEGER NOT NULL);
CREATE TABLE name(id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE thread(rank_id INTEGER, id INTEGER, process INTEGER, thread INTEGER,
  PRIMARY KEY(rank_id, id)) WITHOUT ROWID;
CREATE TABLE device(rank_id INTEGER, ordinal INTEGER, name TEXT, memory_bytes INTEGER,
  multiprocessors INTEGER, compute_major INTEGER, compute_minor INTEGER);
CREATE TABLE fact(rank_id INTEGER, key TEXT, value TEXT);
CREATE TABLE inputs(rank_id INTEGER, id INTEGER, shapes INTEGER, types INTEGER,
  PRIMARY KEY(rank_id, id)) WITHOUT ROWID;
CREATE TABLE launch_shape(rank_id INTEGER, id INTEGER, grid_x INTEGER, grid_y INTEGER,
  grid_z INTEGER, block_x INTEGER, block_y INTEGER, block_z INTEGER, registers INTEGER,
  shared_bytes INTEGER, PRIMARY KEY(rank_id, id)) WITHOUT ROWID;
CREATE TABLE collective(rank_id INTEGER, id INTEGER, kind INTEGER, bytes_in INTEGER,
  bytes_out INTEGER, group_size INTEGER, group_name INTEGER, ranks INTEGER, dtype INTEGER,
  algorithm INTEGER, protocol INTEGER, channels INTEGER,
  PRIMARY KEY(rank_id, id)) WITHOUT ROWID;
CREATE TABLE host_op(rank_id INTEGER, kind INTEGER, name INTEGER, thread INTEGER, start_ns INTEGER,
  duration_ns INTEGER, correlation INTEGER, sequence INTEGER, forward_thread INTEGER,
  record_function INTEGER, inputs INTEGER, collective INTEGER, payload INTEGER);
CREATE TABLE gpu_op(rank_id INTEGER, kind INTEGER, name INTEGER, device INTEGER, stream INTEGER,
  start_ns INTEGER, duration_ns INTEGER, correlation INTEGER, bytes INTEGER, direction INTEGER,
  host_memory INTEGER, launch_shape INTEGER, collective INTEGER, collective_number INTEGER);
CREATE TABLE sync(rank_id INTEGER, kind INTEGER, start_ns INTEGER, duration_ns INTEGER,
  correlation INTEGER, stream INTEGER, source_stream INTEGER, event_correlation INTEGER);
CREATE TABLE dependency(rank_id INTEGER, from_gpu INTEGER, from_row INTEGER, to_gpu INTEGER,
  to_row INTEGER);
CREATE TABLE board(rank_id INTEGER, id INTEGER, uuid TEXT, name TEXT, instance TEXT, device INTEGER,
  multiprocessors INTEGER, all_multiprocessors INTEGER, PRIMARY KEY(rank_id, id)) WITHOUT ROWID;
CREATE TABLE power(rank_id INTEGER, board INTEGER, time_ns INTEGER, power_mw INTEGER,
  energy_mj INTEGER, core_mhz INTEGER, memory_mhz INTEGER, celsius INTEGER, clock_reasons INTEGER);
CREATE TABLE problem(kind INTEGER PRIMARY KEY, name TEXT, severity TEXT, count INTEGER, first TEXT);
CREATE TABLE op_cost(op TEXT, shape TEXT, dtype TEXT, layout TEXT, epilogue TEXT, cold INTEGER,
  device TEXT, multiprocessors INTEGER, partition TEXT, memory_clock_hz REAL, libraries TEXT,
  median_ns REAL, mean_ns REAL, min_ns REAL, p10_ns REAL, p90_ns REAL, samples INTEGER,
  half_width REAL, dropped INTEGER, capped REAL, sm_clock_hz REAL, date TEXT, note TEXT);
CREATE TABLE kind(of TEXT, id INTEGER, name TEXT, PRIMARY KEY(of, id)) WITHOUT ROWID;
INSERT INTO kind VALUES
  ('host_op', 0, 'operator'), ('host_op', 1, 'runtime'), ('host_op', 2, 'driver'),
  ('host_op', 3, 'annotation'), ('host_op', 4, 'frame'), ('host_op', 5, 'overhead'),
  ('gpu_op', 0, 'kernel'), ('gpu_op', 1, 'copy'), ('gpu_op', 2, 'set'),
  ('sync', 0, 'device'), ('sync', 1, 'stream'), ('sync', 2, 'event'),
  ('sync', 3, 'stream_wait_event');
CREATE VIEW gpu AS SELECT g.rank_id, k.name AS kind, n.text AS name, g.device, g.stream, g.start_ns,
  g.duration_ns, g.correlation, g.bytes FROM gpu_op g JOIN name n ON n.id = g.name
  JOIN kind k ON k.of = 'gpu_op' AND k.id = g.kind;
CREATE VIEW host AS SELECT h.rank_id, k.name AS kind, n.text AS name, h.thread, h.start_ns,
  h.duration_ns, h.correlation, h.sequence FROM host_op h JOIN name n ON n.id = h.name
  JOIN kind k ON k.of = 'host_op' AND k.id = h.kind;
CREATE VIEW kernel_summary AS SELECT rank_id, name, count(*) AS calls,
  sum(duration_ns) / 1e6 AS total_ms, avg(duration_ns) / 1e3 AS mean_us FROM gpu
  WHERE kind = 'kernel' GROUP BY rank_id, name ORDER BY total_ms DESC;
)sql";

}  // namespace rehearse::trace
