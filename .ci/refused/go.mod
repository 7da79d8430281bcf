module github.com/eldest-io

go 1.26.0
