"""Keep transactional state stores, recover them, and manage the directory that they are in.

Start reading at `store`, the interfaces, then `transaction` and `key_value`. A store is written by
one task. Writes collect in an overlay, become durable in the changelog first, and reach the disk
(`rocksdb`) together with the changelog offset that they belong to, after Kafka has committed. This
package knows no Kafka client: the runtime hands it changelog entries and offsets.
"""
