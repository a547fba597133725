"""The converters on rows whose outcome is known by hand: python3 -m unittest convert_test"""

import csv
import gzip
import math
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from convert import collectives, examples, golden, job_lists, jobs, open_serving, pairs, serving, shapes


def converted(converter, files):
    """Files of measurements of tables given as text, as lists of rows by path."""
    with tempfile.TemporaryDirectory() as folder:
        data, into = Path(folder) / "data", Path(folder) / "into"
        for name, text in files.items():
            (data / name).parent.mkdir(parents=True, exist_ok=True)
            (data / name).write_text(text)
        converter.convert(data, into)
        found = {}
        for path in into.rglob("*"):
            if path.suffix == ".csv":
                with open(path, newline="") as file:
                    found[str(path.relative_to(into))] = list(csv.DictReader(file))
            elif path.is_file():
                found[str(path.relative_to(into))] = path.read_text().splitlines()
        return found


TORCHTITAN = ("gpu,model,num_gpus,global_batch,local_batch,seq_len,precision,torch_compile,"
              "parallelism,activation_ckpt,tokens_per_s_per_gpu,peak_mem_gib\n")


def torchtitan(*rows):
    return converted(jobs, {"titan.csv": TORCHTITAN + "\n".join(rows) + "\n"})


class Jobs(unittest.TestCase):
    def test_a_row_of_torchtitan_is_a_plan(self):
        found = torchtitan("H100-96GB-500W,llama3.1-405B,512,,8,131072,float8,yes,"
                           "fsdp2 tp8 pp8 cp4 asynctp 1f1b,full,31,77.1")
        (row,) = found["jobs/torchtitan.csv"]
        for column, value in {
                "workload.hidden": "16384", "workload.kv_heads": "8", "plan.data": "2",
                "plan.tensor": "8", "plan.pipeline": "8", "plan.context": "4", "plan.zero": "3",
                "plan.asynchronous_tensor": "true", "plan.context_balanced": "false",
                "training.microbatch": "1", "training.global_batch": "16",
                "training.recompute": "full", "training.dtype": "fp8", "cluster.nodes": "64",
                "cluster.inter_node.rate": "400 Gbit/s", "workload.logit_bytes": "22",
                "case": "torchtitan/fp8", "use": "source_left_out"}.items():
            self.assertEqual(row[column], value, column)
        # 16 samples of 131072 tokens on 512 devices at 31 tokens/s each.
        self.assertAlmostEqual(float(row["step_s"]), 16 * 131072 / (512 * 31))
        (peak,) = found["memory/torchtitan.csv"]
        self.assertEqual((peak["peak_gib"], "step_s" in peak), ("77.1", False))

    def test_rows_without_words_are_left_out(self):
        found = torchtitan("H100-96GB-500W,llama9-1T,8,,1,8192,bf16,no,fsdp8,full,1,",
                           "H100-96GB-500W,llama3-8B,16,,1,8192,bf16,no,fsdp8,full,1,",
                           "H100-96GB-500W,llama3-8B,8,,1,8192,bf16,no,ddp8,full,1,")
        self.assertEqual(found, {"studies/jobs_left_out.txt": [
            "llama9-1T fsdp8 8192 bf16 full eager: a model of unknown shape",
            "llama3-8B fsdp8 8192 bf16 full eager: the degrees do not make up the GPUs",
            "llama3-8B ddp8 8192 bf16 full eager: 'ddp8'"]})

    def nemo(self, release, model, system, expert, precision="BF16"):
        found = converted(jobs, {"nemo.csv": (
            "release,task,model,system,gpus,precision,gbs,mbs,seq_len,fsdp,tp,pp,cp,vp,ep,etp,ga,"
            "tokens_per_s_per_gpu,model_tflops_per_gpu\n"
            f"{release} NeMo Container,Pre-Training Performance,{model},{system},64,{precision},"
            f"1280,4,4096,0,1,1,1,n/a,{expert},,,1000,100\n")})
        return found["jobs/nemo.csv"][0]

    def test_rows_of_nemo_take_from_recipes_what_no_column_says(self):
        before = self.nemo("26.04.01", "GPT OSS 120B", "DGX-GB200", "64")
        self.assertEqual(before["workload.fused_experts"], "false")
        self.assertEqual(before["workload.recompute_ops"].count(","), 3)
        self.assertEqual(before["plan.expert_exchange"], "tokens_once")
        fused = "workload.fused_experts"
        self.assertEqual(self.nemo("26.06", "GPT OSS 120B", "DGX-GB200", "64")[fused], "true")
        self.assertEqual(self.nemo("26.06.01", "GPT OSS 120B", "DGX-GB200", "64")[fused], "false")
        self.assertEqual(self.nemo("26.06.01", "Qwen3_30B_a3B", "DGX-H100", "8")[fused], "true")
        self.assertNotIn("plan.expert_exchange",
                         self.nemo("26.04", "GPT OSS 120B", "DGX-H100", "8"))
        # Only some recipes capture CUDA graphs.
        host = "sustained.implementation"
        qwen = ("26.06", "Qwen3_30B_a3B", "DGX-H100", "8")
        self.assertEqual(self.nemo(*qwen, "FP8")[host], "megatron_lm")
        self.assertNotIn(host, self.nemo(*qwen))

    def test_sc21_leaves_microbatch_and_interleaving_open(self):
        rows = converted(jobs, {"sc21.csv": (
            "params_billion,heads,hidden,layers,tp,pp,num_gpus,global_batch,tflops_per_gpu\n"
            "529.6,128,20480,105,8,35,2520,2520,163\n")})["jobs/sc21-table1.csv"]
        # 105 layers on 35 stages: one or three chunks; 2520 / 9 = 280 microbatches of 1, 140 of 2,
        # 70 of 4.
        self.assertEqual([(r["training.microbatch"], r["plan.interleave"], r["plan.schedule"])
                          for r in rows],
                         [(m, *c) for m in "124" for c in (("1", "1f1b"), ("3", "interleaved"))])
        self.assertEqual(len({r["choice"] for r in rows}), 6)
        # 96 B s l h² (1 + s/6h + V/16lh) / (gpus · rate)
        flops = (96 * 2520 * 2048 * 105 * 20480**2 *
                 (1 + 2048 / (6 * 20480) + 51200 / (16 * 105 * 20480)))
        self.assertAlmostEqual(float(rows[0]["step_s"]), flops / (2520 * 163e12))

    def nanotron(self, *rows, kind="jobs", file="llama_3b_h100.csv"):
        found = converted(jobs, {file: (
            "nodes,microbatch,accumulation,global_batch,data,pipeline,tensor,zero,mfu_percent,"
            "tokens_per_s_per_gpu,memory_gb\n" + "\n".join(rows) + "\n")})
        return found[f"{kind}/nanotron.csv"]

    def test_a_file_of_nanotron_names_its_model(self):
        (row,) = self.nanotron("4,2,16,256,32,1,1,1,30.5,10000.0,40.1", file="llama_8b_h100.csv")
        for column, value in {"hidden": "4096", "layers": "32", "heads": "32", "head_size": "128",
                              "feed_forward": "14336", "tied_embedding": "false"}.items():
            self.assertEqual(row["workload." + column], value, column)

    def test_a_peak_of_nanotron_is_of_the_first_of_its_own_stages(self):
        (peak,) = self.nanotron("4,2,16,256,8,4,1,1,30.5,10000.0,40.1", kind="memory")
        # 28 layers and a head of 3.56 layers: 7.89 layers a stage, the first full with 8.
        self.assertEqual(peak["plan.stages"], "[" + ", ".join(
            f"{{layers: {layers}, data: 8, tensor: 1}}" for layers in (9, 8, 8, 5)) + "]")
        for column, value in {"peak_gib": "40.1", "stage": "first", "plan.tensor": "",
                              "training.accumulation": "apart",
                              "workload.gathered_inputs": "unknown"}.items():
            self.assertEqual(peak.get(column, ""), value, column)


    def test_a_row_of_nanotron_is_a_plan(self):
        (row,) = self.nanotron("4,2,16,256,8,2,2,1,30.5,10000.0,40.1")
        for column, value in {
                "name": "n4 dp8 pp2 tp2 mb2 z1", "group": "h100_sxm5_80 x32, 3072 28 32 4096",
                "case": "nanotron/pipeline over nodes", "plan.split": "flops",
                "plan.sequence_parallel": "true", "workload.tied_embedding": "false",
                "training.gradients": "fp32", "cluster.inter_node.links": "8",
                "cluster.inter_node.rate": "400 Gbit/s",
                "cluster.inter_node.network": "efa"}.items():
            self.assertEqual(row[column], value, column)
        # 256 sequences of 4096 tokens on 32 GPUs at 10000 tokens/s each.
        self.assertAlmostEqual(float(row["step_s"]), 256 * 4096 / (32 * 10000))

    def test_rows_of_nanotron_are_apart_by_what_limits_them(self):
        rows = self.nanotron("1,1,64,256,1,2,4,1,9,1,9", "1,2,64,256,2,1,4,0,9,1,9",
                             "2,1,64,256,1,1,16,1,9,1,9", "2,1,64,256,4,4,1,1,9,1,9",
                             "4,1,64,256,1,2,16,1,9,1,9", "64,1,64,256,64,1,8,0,9,1,9")
        self.assertEqual([row["case"].removeprefix("nanotron/") for row in rows],
                         ["host-bound", "kernel-bound", "tensor over nodes",
                          "pipeline over nodes", "tensor and pipeline over nodes",
                          "above 32 nodes"])
        # Only a pipeline has a split, and unties the head.
        self.assertEqual([row["workload.tied_embedding"] for row in rows],
                         ["false", "true", "true", "false", "false", "true"])

    def test_rows_of_bigscience_compare_within_a_period(self):
        head = ("line,date,status,gpus,layers,hidden,heads,heads_from,seq,vocab,dp,tp,pp,mbs,gbs,"
                "zero,dtype,grad_accumulation,partition,launch_blocking,seconds,duplicate_of\n")
        found = converted(jobs, {"prequel.csv": head + "\n".join((
            "1,02-24,ok,384,72,14336,64,l,2048,250880,4,8,12,2,2048,1,16-bit (not stated),16-bit,"
            "transformer,,134.02,",
            "2,02-28,ok,384,70,14336,112,l,2048,250880,8,4,12,2,2048,1,bf16,fp32,"
            "transformer|embedding,,104.5,",
            "3,02-24,oom,384,72,14336,64,l,2048,250880,4,8,12,8,2048,1,bf16,fp32,,,,",
            "4,02-24,ok,384,72,14336,64,l,2048,250880,4,8,12,2,2048,1,bf16,fp32,,,134.02,1"))})
        first, second = found["jobs/bigscience.csv"]
        self.assertEqual((first["workload.embedding_norm"], first["plan.bucket"]),
                         ("true", "1 GB"))
        self.assertEqual((first["group"], first["training.dtype"], first["training.gradients"],
                          first["plan.split"], first["step_s"], first["workload.head_size"]),
                         ("February 21-24 a100_sxm4_80 x384, 14336 72 64 2048", "fp16", "fp16", "",
                          "134.02", "224"))
        self.assertEqual((second["group"].split(" a100")[0], second["training.dtype"],
                          second["training.gradients"], second["plan.split"],
                          second["cluster.inter_node.links"],
                          second["cluster.inter_node.network"], second["workload.positions"]),
                         ("February 28", "bf16", "fp32", "layers", "4", "omni_path", "none"))
        self.assertEqual([(row["plan.overlap_tensor"], row["sustained.launch_blocking"])
                          for row in (first, second)], [("false", ""), ("false", "true")])
        self.assertEqual([line.split(": ")[1] for line in found["studies/jobs_left_out.txt"]],
                         ["oom", "the row of line 1 again"])

    def test_names_of_models_in_any_spelling(self):
        self.assertEqual(shapes.named("LLAMA3.1_405B")["layers"], 126)
        self.assertEqual(shapes.named("llama3.1-405B")["layers"], 126)
        self.assertEqual(shapes.named("Qwen3_235B_a22B")["experts"], 128)
        self.assertIsNone(shapes.named("DeepSeekV3"))
        self.assertEqual(shapes.mpt("7b")["hidden"], 4096)

    def test_published_jobs_fill_their_devices_and_name_their_page(self):
        with open(Path(__file__).parent / "published_jobs.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 135)
        self.assertEqual(len({(row["case"], row["name"]) for row in rows}), len(rows))
        for row in rows:
            ranks = math.prod(int(row[f"plan.{degree}"] or 1)
                              for degree in ("data", "tensor", "pipeline", "context"))
            devices = int(row["cluster.devices_per_node"]) * int(row["cluster.nodes"])
            self.assertEqual(ranks, devices, row["name"])
            self.assertRegex(row["note"], "20[12][0-9]")

    def test_recalled_jobs_fill_their_devices_and_say_what_was_assumed(self):
        with open(Path(__file__).parent / "recalled_jobs.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 20)
        for row in rows:
            ranks = 1
            for degree in ("data", "tensor", "pipeline", "context"):
                ranks *= int(row[f"plan.{degree}"])
            devices = int(row["cluster.devices_per_node"]) * int(row["cluster.nodes"])
            self.assertEqual(ranks, devices, row["name"])
            self.assertIn("Assumed: ", row["note"])


class Golden(unittest.TestCase):
    COLUMNS = [
        "suite", "case", "gpu", "branch", "test_type", "mode", "gpus_per_node", "gpus",
        "num-layers", "hidden-size", "ffn-hidden-size", "num-attention-heads", "num-query-groups",
        "kv-channels", "seq-length", "encoder-num-layers", "decoder-num-layers",
        "encoder-seq-length", "decoder-seq-length", "micro-batch-size", "global-batch-size",
        "tensor-model-parallel-size", "pipeline-model-parallel-size",
        "num-layers-per-virtual-pipeline-stage", "num-virtual-stages-per-pipeline-rank",
        "context-parallel-size", "expert-model-parallel-size", "expert-tensor-parallel-size",
        "sequence-parallel", "use-distributed-optimizer", "optimizer", "fp16", "num-experts",
        "moe-router-topk", "moe-ffn-hidden-size", "moe-shared-expert-intermediate-size",
        "transformer-impl", "attention-backend", "attention-dropout", "hidden-dropout",
        "no-gradient-accumulation-fusion", "swiglu", "disable-bias-linear", "normalization",
        "position-embedding-type", "untie-embeddings-and-output-weights",
        "make-vocab-size-divisible-by", "tokenizer-type", "vocab-size", "vocab-file",
        "max-position-embeddings", "mem_max_max", *golden.UNUSUAL]
    GPT = {"suite": "gpt", "case": "gpt3", "gpu": "h100", "branch": "dev", "test_type": "regular",
           "mode": "pretraining", "gpus_per_node": "8", "gpus": "8", "num-layers": "12",
           "hidden-size": "512", "num-attention-heads": "8", "seq-length": "1024",
           "micro-batch-size": "4", "global-batch-size": "32", "tensor-model-parallel-size": "2",
           "pipeline-model-parallel-size": "2", "num-layers-per-virtual-pipeline-stage": "1",
           "transformer-impl": "transformer_engine", "attention-backend": "unfused",
           "vocab-file": "text/bpe/vocab.json", "max-position-embeddings": "1024",
           "mem_max_max": str(2 ** 31)}

    def golden(self, **changed):
        row = self.GPT | changed
        with_commas = ",".join(self.COLUMNS)
        return converted(golden, {"golden.csv": with_commas + "\n" + ",".join(
            row.get(column, "") for column in self.COLUMNS) + "\n"})

    def test_arguments_are_a_plan_and_defaults_of_megatron(self):
        (row,) = self.golden()["memory/megatron-golden.csv"]
        for column, value in {
                "case": "megatron-golden, gpt", "counted": "allocated", "stage": "last",
                "peak_gib": "2.0", "workload.vocabulary": "50432", "workload.dropout": "true",
                "workload.attention": "unfused", "workload.feed_forward": "2048",
                "plan.data": "2", "plan.interleave": "6", "plan.zero": "0",
                "training.dtype": "bf16"}.items():
            self.assertEqual(row[column], value, column)

    def test_a_decoder_has_a_length_of_its_own(self):
        (row,) = self.golden(**{
            "suite": "t5", "num-layers": "", "seq-length": "", "encoder-num-layers": "12",
            "decoder-num-layers": "6", "encoder-seq-length": "512", "decoder-seq-length": "128",
            "num-layers-per-virtual-pipeline-stage": ""})["memory/megatron-golden.csv"]
        self.assertEqual((row["workload.sequence"], row["workload.decoder_sequence"],
                          row["workload.layers"], row["workload.decoder_layers"]),
                         ("512", "128", "12", "6"))

    def test_rows_that_leave_the_kernel_open_are_left_out(self):
        found = self.golden(**{"attention-backend": ""})
        self.assertEqual(found["studies/golden_left_out.txt"],
                         ["gpt3: the attention kernel is not stated"])


class Collectives(unittest.TestCase):
    def test_every_fourth_size_of_a_curve_is_left_out(self):
        rows = [collectives.measured("h100_sxm5_80", op, 8, 2**i, 1.0)
                for op in ("all_reduce", "all_gather") for i in range(10, 18)]
        blind = [(row["op"], row["size_bytes"]) for row, fitted in
                 collectives.every_fourth_left_out(rows) if not fitted]
        # The second curve begins with another size.
        self.assertEqual(blind, [("all_reduce", 2**13), ("all_reduce", 2**17),
                                 ("all_gather", 2**12), ("all_gather", 2**16)])

    def test_eight_sizes_per_doubling_are_fitted(self):
        rows = [collectives.measured("v100_sxm2_16", "all_reduce", 8, 2**20 + i * 2**14, 1.0)
                for i in range(64)]
        self.assertEqual(sum(fitted for _, fitted in collectives.eight_per_doubling(rows)), 8)


class Pairs(unittest.TestCase):
    def test_a_pair_and_its_mirror_are_one(self):
        head = "file,gpu,gpus_on_one_server,job,batch_size_per_gpu,num_gpus,"
        rows = converted(pairs, {
            "gavel-throughputs/colocated.csv":
                head + "other_job,other_batch,other_num_gpus,steps_per_s,other_steps_per_s\n"
                       "simulation,v100,yes,A,8,1,B,,1,2,8\nsimulation,v100,yes,B,,1,A,8,1,8,2\n"
                       "simulation,v100,yes,A,8,1,A,8,1,0,0\n",
            "gavel-throughputs/isolated.csv":
                head + "steps_per_s\nsimulation,v100,yes,A,8,1,4\nsimulation,v100,yes,B,,1,10\n",
        })["pairs/gavel.csv"]
        self.assertEqual([(r["job"], r["batch"], r["other_job"], r["share"]) for r in rows],
                         [("A", "8", "B", "0.5"), ("B", "1", "A", "0.8")])
        self.assertEqual(rows[0]["device"], "v100_sxm2_16")


PHILLY = """[
  {"jobid": "a1", "user": "u1", "submitted_time": "2017-10-07 01:11:39", "attempts": [
     {"start_time": "2017-10-07 01:12:00", "end_time": "2017-10-07 01:13:00",
      "detail": [{"ip": "m47", "gpus": ["gpu0", "gpu1"]}]},
     {"start_time": "2017-10-07 01:20:00", "end_time": "2017-10-07 01:25:00",
      "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu7"]}]},
     {"start_time": "2017-10-07 02:00:00", "end_time": null,
      "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]},
  {"jobid": "a2", "user": "u2", "submitted_time": "2017-10-07 01:11:49", "attempts": []},
  {"jobid": "a3", "user": "u2", "submitted_time": "2017-10-07 01:12:39",
   "attempts": [{"start_time": "None", "end_time": "None", "detail": []}]},
  {"jobid": "a4", "user": "u2", "submitted_time": "2017-10-07 01:11:49", "attempts": [
     {"start_time": "2017-10-07 01:11:50", "end_time": "2017-10-07 01:12:50",
      "detail": [{"ip": "m9", "gpus": ["gpu3"]}]}]}]"""
PAI_JOBS = ("j1,i1,u1,Terminated,100.0,400.0\nj2,i2,u2,Terminated,130.0,200.0\n"
            "j3,i3,u2,Running,140.0,\nj4,i4,u2,Failed,150.0,160.0\n")
PAI_TASKS = ("j1,ps,1.0,Terminated,105.0,405.0,600.0,29.3,0.0,\n"
             "j1,worker,2.0,Terminated,110.0,390.0,400.0,29.3,50.0,MISC\n"
             "j1,chief,1.0,Terminated,120.0,400.0,400.0,29.3,200.0,V100\n"
             "j2,tensorflow,1.0,Terminated,140.0,200.0,600.0,29.3,100.0,T4\n"
             "j3,tensorflow,1.0,Running,150.0,,600.0,29.3,100.0,T4\n"
             "j4,xlearn,3.0,Failed,150.0,160.0,600.0,29.3,,CPU\n")


class JobLists(unittest.TestCase):
    def listed(self, files):
        """The jobs as user, arrival, work and GPUs, and how many were left out."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                (Path(folder) / name).write_text(text)
            into = Path(folder) / "jobs.csv"
            _, left_out = job_lists.convert(Path(folder) / list(files)[0], into)
            with open(into, newline="") as file:
                return [(row["user"], row["submit_s"], row["duration_s"], row["gpus"])
                        for row in csv.DictReader(file)], left_out

    def test_helios_has_dates_and_jobs_without_gpus(self):
        self.assertEqual(self.listed({"cluster_log.csv": (
            "job_id,user,vc,gpu_num,submit_time,duration\n7,u1,v1,1,2020-02-29 23:59:59,60\n"
            "8,u1,v1,0,2020-03-01 00:00:00,60\n9,u2,v1,16,2020-03-01 00:00:09,1\n")}),
            ([("u1", "0", "60", "1"), ("u2", "10", "1", "16")], 1))

    def test_a_pod_of_openb_that_was_never_scheduled_is_left_out(self):
        self.assertEqual(self.listed({"openb.csv": (
            "name,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n"
            "p1,8,1000,100,300,150\np2,1,500,100,300,\np3,0,0,100,300,100\n")}),
            ([("", "0", "150", "8")], 2))

    def test_spot_gpus_and_tiresias(self):
        self.assertEqual(self.listed({"spot.csv": (
            "job_name,organization,gpu_request,worker_num,submit_time,duration\n"
            "1,13,2,16,5,60\n")}), ([("13", "0", "60", "32")], 0))
        self.assertEqual(self.listed({"a_job.csv": (
            "job_id,num_gpu,submit_time,duration,interval\n1,4,10,600,0\n2,1,30,60,0\n")}),
            ([("", "0", "600", "4"), ("", "20", "60", "1")], 0))

    def test_a_job_of_philly_has_the_time_of_all_attempts_and_the_gpus_of_the_largest(self):
        self.assertEqual(self.listed({"cluster_job_log": PHILLY}),
                         ([("u1", "0", "360", "3"), ("u2", "10", "60", "1")], 2))

    def test_jobs_and_tasks_of_pai_are_joined(self):
        # Two workers of half a GPU hold one each, and the chief two; parameter servers hold none.
        expected = [("u1", "0", "290", "4"), ("u2", "30", "60", "1")], 2
        files = {"pai_job_table.csv": PAI_JOBS, "pai_task_table.csv": PAI_TASKS}
        self.assertEqual(self.listed(files), expected)
        files["pai_job_table.csv"] = ",".join(job_lists.PAI_JOBS) + "\n" + PAI_JOBS
        self.assertEqual(self.listed(files), expected)


SILICON = ("id,origin,measured,concurrency,batch_size,backend,backend_version,model_path,system,"
           "precision,mode,isl,osl,attention_dp_size,tp_size,pp_size,moe_ep_size,silicon_ttft_ms,"
           "silicon_tpot_ms\n")


class Examples(unittest.TestCase):
    def test_rates_of_nvidia_are_steps_of_its_recipes(self):
        rows = converted(examples, {"nvidia-dle-resnet50/resnet50_train_throughput.csv": (
            "model,gpu,num_gpus,precision,images_per_s\n"
            "resnet50v1.5,A100-80GB (DGX A100),8,AMP,16384\n"
            "resnet50v1.5,V100-16GB (DGX-1),1,FP32,448\n")})["jobs/dle-resnet50.csv"]
        half, single = rows
        self.assertEqual((half["case"], half["step_s"]), ("dle-resnet50/fp16", "0.125"))
        self.assertEqual((half["training.dtype"], half["plan.data"]), ("fp16", "8"))
        self.assertEqual((half["workload.channels_last"], single["workload.channels_last"]),
                         ("true", ""))
        self.assertEqual(single["step_s"], "0.25")  # 112 samples

    def test_of_frameworks_pytorch_is_read(self):
        rows = converted(examples, {"dlperf-v100/report_v1_framework_scaling.csv": (
            "benchmark,precision_and_batch,framework,nodes,gpus,samples_per_s\n"
            "ResNet50 V1.5,\"AMP, batch size = 256\",MXNet,1,1,800\n"
            "ResNet50 V1.5,\"AMP, batch size = 256\",NGC PyTorch,2,16,8192\n"
            "BERT Base,\"FP32, batch size = max\",NGC PyTorch bsz=48,1,1,96\n"
            "BERT Base,\"FP32, batch size = max\",NGC PyTorch bsz=48,1,8,768\n")})
        resnet, bert, summed = rows["jobs/dlperf-examples.csv"]
        self.assertEqual((resnet["case"], resnet["step_s"]), ("dlperf-resnet50/fp16", "0.5"))
        self.assertEqual(resnet["cluster.devices_per_node"], "8")
        self.assertEqual((bert["case"], bert["step_s"]), ("dlperf-bert", "0.5"))
        self.assertEqual((bert["plan.overlap_gradients"], summed["plan.overlap_gradients"]),
                         ("", "false"))

    def test_lambda_states_batches_in_another_table(self):
        head = "system,bert_base_squad,bert_large_squad,resnet50\n"
        (resnet, *berts) = converted(examples, {
            "lambda-gpu-benchmark/pytorch-train-bs-fp32.csv": head + "RTX A6000,64,16,128\n",
            "lambda-gpu-benchmark/pytorch-train-throughput-fp32.csv":
                head + "RTX A6000,32,8,256\n2x RTX A6000,64,16,512\n"})["jobs/lambda-examples.csv"]
        self.assertEqual((resnet["training.dtype"], resnet["step_s"]), ("tf32", "0.5"))
        self.assertEqual([row["step_s"] for row in berts], ["2", "2"])


class Serving(unittest.TestCase):
    def test_rows_of_servers(self):
        found = converted(serving, {"serving-silicon/silicon_dev.csv": SILICON + (
            "a,db-dump,2025-09,4,4,trtllm,,meta/Llama-3.1-70B,b200_sxm,fp8,agg,1024,512,1,2,1,1,"
            "70,9\n"
            "again,db-dump,2025-09,4,4,trtllm,,meta/Llama-3.1-70B,b200_sxm,fp8,agg,1024,512,1,2,1,"
            "1,70,9\n"
            "b,gap-analysis,2026-01,8,8,vllm,0.12.0,Qwen/Qwen3-32B,h100_sxm,,agg,1000,100,1,1,1,0,"
            "80,10\n"
            "apart,db-dump,2026-01,8,8,vllm,0.12.0,Qwen/Qwen3-32B,h100_sxm,,disagg,1000,100,1,1,1,"
            "0,81,10\n"
            # Its client sends equal requests; room for 512 rows, 1,000 tokens and 1,500 more.
            "c,gap-analysis,2025-09,8,8,trtllm,1.0.0rc3,Qwen/Qwen3-32B,h100_sxm,fp8,agg,1000,100,1,"
            "1,1,0,80,11\n"
            "replicas,gap-analysis,2025-09,16,8,trtllm,1.0.0rc3,Qwen/Qwen3-32B,h100_sxm,fp8,agg,1000,"
            "100,1,1,1,0,80,12\n")})
        (known,) = found["serving/client_known.csv"]
        self.assertEqual((known["ttft_s"], known["tpot_s"]), ("0.07", "0.009"))
        # 1024 + 4 + 64 tokens, in whole blocks of 64.
        self.assertEqual(known["serve.flags.max_num_tokens"], "1152")
        self.assertEqual(known["serve.load.requests"], "40")
        self.assertEqual((known["case"], known["use"]), ("trtllm b200_sxm", "fitted"))
        unknown, equal = found["serving/client_unknown.csv"]
        self.assertEqual(equal["serve.load.input"], "1000")
        self.assertEqual(equal["serve.flags.max_num_tokens"], "3040")
        self.assertNotIn("ttft_s", unknown)
        self.assertEqual((unknown["serve.precision.weights"], unknown["serve.plan.expert"]),
                         ("bf16", "1"))
        self.assertEqual(unknown["use"], "source_left_out")

    def test_replicas_of_a_plan_are_one_row(self):
        head = "framework,model,workload,rate_per_s,plan,part,ttft,tpot,total_latency_s,"
        # Two requests with 3 of 4 tokens each: 2 · 0.1 + 6 · 0.01 s.
        part = "vllm,llama,lmsys,0.5,2DP4TP,{},0.1,0.01,{},-2\n"
        found = self.open_loads({
            "serving-plans/plans.csv": head + "output_tokens_missing\n" + part.format(0, 0.26) +
                                       part.format(1, 0.26),
            "serving-plans/trace_llama_lmsys_05.csv.gz":
                "arrival,context_tokens,generated_tokens\n" +
                "".join(f"{i}000000000,9,4\n" for i in range(4))})
        (row,) = found["serving/plans.csv"]
        self.assertEqual((row["serve.plan.data"], row["serve.plan.tensor"]), ("2", "4"))
        self.assertEqual(row["ttft_s"], "0.1")
        # 12 tokens of 0.01 s each; the first ones have none of their own.
        self.assertAlmostEqual(float(row["tpot_s"]), 0.12 / 8)
        trace = found["request_traces/llama_lmsys_0.5_2DP4TP.csv"]
        self.assertEqual(trace[2], {"arrival_s": "2.000000", "input_tokens": "9",
                                    "output_tokens": "3"})
        self.assertNotIn("serving/plans.csv", self.open_loads({
            "serving-plans/plans.csv": head + "output_tokens_missing\n" + part.format(0, 9),
            "serving-plans/trace_llama_lmsys_05.csv.gz": "arrival,context_tokens,generated_tokens\n"
                                                         "0,9,4\n"}))

    def open_loads(self, files):
        with mock.patch.object(Path, "write_text", lambda path, text: path.write_bytes(
                gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())):
            return converted(open_serving, files)


if __name__ == "__main__":
    unittest.main()
