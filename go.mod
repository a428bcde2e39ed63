module github.com/stintgo/stint

go 1.26
