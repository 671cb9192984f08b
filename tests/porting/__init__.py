"""Port applications of Kafka Streams, Java beside Python, and compare what both write."""
