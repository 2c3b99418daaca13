"""What a load needs of Temporal, of the archive's store and of workers: a model of counts that the
repository's tests assert, and of sizes that its benchmarks measured.
"""
