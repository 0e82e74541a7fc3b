from position_bias.running import calls, runtime

with runtime.job(snakemake.log[0]):
    calls.write(calls.make(snakemake), snakemake)
